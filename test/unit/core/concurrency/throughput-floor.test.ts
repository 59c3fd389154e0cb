import { describe, expect, it } from "vitest";
import { ThroughputFloor } from "../../../../src/core/concurrency/throughput-floor.js";

/** Steps of half a second. */
const stepMs = 500;

interface Seen {
  readonly limit: number;
  readonly endedCount: number;
  readonly dispersion?: number;
}

/** Steps at a limit, in each of which so many requests end; the floor after them. */
class Steps {
  readonly floor = new ThroughputFloor();
  #nowMs = 0;

  run(stepCount: number, { limit, endedCount, dispersion = 1 }: Seen): number {
    for (let i = 0; i < stepCount; i += 1) {
      this.begin(endedCount);
      this.floor.keep({ nowMs: this.#nowMs, limit, inFlightMax: limit, dispersion });
    }
    return this.floor.floor;
  }

  begin(endedCount: number): number {
    this.floor.begin(this.#nowMs);
    for (let i = 0; i < endedCount; i += 1) this.floor.ended();
    this.#nowMs += stepMs;
    return this.#nowMs;
  }
}

describe("ThroughputFloor", () => {
  it("is what was in flight before a lower limit let fewer end", () => {
    const steps = new Steps();
    expect(steps.run(10, { limit: 200, endedCount: 200 })).toBe(0);
    expect(steps.run(8, { limit: 150, endedCount: 100 })).toBe(200);
    // By a half at once.
    expect(steps.run(1, { limit: 100, endedCount: 100 })).toBe(150);
  });

  it("leaves a limit alone that is lower at the same throughput", () => {
    const steps = new Steps();
    steps.run(10, { limit: 200, endedCount: 200 });
    expect(steps.run(50, { limit: 100, endedCount: 195 })).toBe(0);
  });

  it("is none where the service has become slower", () => {
    const steps = new Steps();
    steps.run(10, { limit: 200, endedCount: 200 });
    steps.run(10, { limit: 100, endedCount: 100 });
    expect(steps.run(10, { limit: 200, endedCount: 100 })).toBe(0);
  });

  it("falls where the throughput does not need it", () => {
    const steps = new Steps();
    steps.run(10, { limit: 200, endedCount: 200 });
    const floor = steps.run(10, { limit: 100, endedCount: 100 });
    expect(steps.run(60, { limit: 200, endedCount: 200 })).toBeLessThan(floor / 4);
  });

  it("tries more now and then where round trips scatter much", () => {
    const steps = new Steps();
    const scattered = { limit: 20, endedCount: 20, dispersion: 2 };
    expect(steps.run(7, scattered)).toBe(0);
    expect(steps.run(1, scattered)).toBe(30);
    expect(steps.run(7, scattered)).toBeLessThan(22);
  });

  it("tells a step in which so few ended that it is no chance", () => {
    const steps = new Steps();
    steps.run(10, { limit: 200, endedCount: 200 });
    expect(steps.floor.hasFallen(steps.begin(190))).toBe(false);
    expect(steps.floor.hasFallen(steps.begin(140))).toBe(true);
  });
});
