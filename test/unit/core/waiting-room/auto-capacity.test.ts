import { describe, expect, it } from "vitest";
import {
  type AutoCapacity,
  nextAutoCapacity,
} from "../../../../src/core/waiting-room/auto-capacity.js";

const unmeasured: AutoCapacity = { autoActiveMax: undefined, inFlightSum: 0, activeSum: 0 };

/** Seconds with a service of which each session in use has so many requests in flight. */
function served(
  seconds: number,
  { limit, perSession, demand = 1e9 }: { limit: number; perSession: number; demand?: number },
  from = unmeasured,
): AutoCapacity {
  let capacity = from;
  for (let second = 0; second < seconds; second += 1) {
    const activeCount = Math.min(demand, Math.floor(capacity.autoActiveMax ?? limit));
    const load = { limit, inFlightCount: activeCount * perSession };
    capacity = nextAutoCapacity(capacity, load, { activeCount, elapsedSeconds: 1 });
  }
  return capacity;
}

describe("nextAutoCapacity()", () => {
  it("changes nothing while the service's limit is not known", () => {
    const times = { activeCount: 5, elapsedSeconds: 1 };
    expect(nextAutoCapacity(unmeasured, undefined, times)).toBe(unmeasured);
    expect(nextAutoCapacity(unmeasured, { limit: 0, inFlightCount: 0 }, times)).toBe(unmeasured);
  });

  it("begins with the limit, and ends where sessions use 90 % of it", () => {
    expect(served(1, { limit: 200, perSession: 0.1 }).autoActiveMax).toBeLessThan(203);
    expect(served(2_000, { limit: 200, perSession: 0.1 }).autoActiveMax).toBeCloseTo(1_800, 0);
    expect(served(2_000, { limit: 200, perSession: 3 }).autoActiveMax).toBeCloseTo(60, 0);
  });

  it("grows by 1 % a second at most, and falls by 3 %", () => {
    const start = served(2_000, { limit: 100, perSession: 0.1 });
    const from = start.autoActiveMax ?? 0;
    const risen = served(10, { limit: 1_000, perSession: 0.1 }, start).autoActiveMax ?? 0;
    expect(risen / from).toBeLessThanOrEqual(1.01 ** 10 + 1e-9);
    const fallen = served(10, { limit: 10, perSession: 0.1 }, start).autoActiveMax ?? 0;
    expect(fallen / from).toBeGreaterThanOrEqual(0.97 ** 10 - 1e-9);
    expect(fallen).toBeLessThan(from);
  });

  it("does not grow beyond what is used", () => {
    const idle = served(5_000, { limit: 100, perSession: 0.01, demand: 50 });
    expect(idle.autoActiveMax).toBe(100);
    expect(served(5_000, { limit: 100, perSession: 0, demand: 1e9 }).autoActiveMax).toBe(100);
  });

  it("lets one in, whatever is measured", () => {
    expect(served(5_000, { limit: 1, perSession: 50 }).autoActiveMax).toBe(1);
  });
});
