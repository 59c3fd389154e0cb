import { describe, expect, it } from "vitest";
import type { Demand } from "../../../../src/core/concurrency/concurrency-limit.js";
import { KneeLimit } from "../../../../src/core/concurrency/knee-limit.js";

const limits = { initial: 50, min: 1, max: 1_000 };

/** Three times what the service can do, a tenth of it critical. */
const overload: Demand = { loadRatio: 3, criticalRatio: 0.3 };

interface Spell {
  readonly workerCount: number;
  readonly serviceMs?: number;
  readonly seconds: number;
  readonly demand?: Demand;
  /** Requests in flight at most, whatever the limit. Default: as many as it lets in */
  readonly inFlightMax?: number;
  /** A part of the callers that leaves after half of its time. Default 0 */
  readonly leftRatio?: number;
  /** The deadline that callers state, at which they are gone. Default: none */
  readonly deadlineMs?: number;
}

/** A service whose limit is always used up: time goes on request by request. */
class Service {
  readonly law: KneeLimit;
  readonly seen: number[] = [];
  #nowMs = 0;
  #count = 0;

  constructor(bounds: Partial<typeof limits> = {}) {
    this.law = new KneeLimit({ ...limits, ...bounds });
  }

  /** Nobody is served, and all leave. */
  leave({ afterMs, seconds }: { readonly afterMs: number; readonly seconds: number }): this {
    const untilMs = this.#nowMs + seconds * 1_000;
    while (this.#nowMs < untilMs) {
      const inFlight = this.law.limit;
      this.#nowMs += afterMs / inFlight;
      const [startMs, endMs] = [this.#nowMs - afterMs, this.#nowMs];
      const sample = { startMs, endMs, inFlight, position: inFlight, demand: overload };
      this.law.record({ ...sample, outcome: "ignore", isLeft: true });
      this.seen.push(this.law.limit);
    }
    return this;
  }

  serve(spell: Spell): this {
    const { workerCount, serviceMs = 50, seconds, demand = overload, inFlightMax } = spell;
    const { leftRatio = 0, deadlineMs = Number.POSITIVE_INFINITY } = spell;
    const untilMs = this.#nowMs + seconds * 1_000;
    while (this.#nowMs < untilMs) {
      const { limit } = this.law;
      this.#count += 1;
      // Who comes right after one has left finds as many as may be; some find a few less.
      const most = Math.min(limit, inFlightMax ?? limit);
      const inFlight = Math.max(1, most - (this.#count % 3));
      const rttMs = serviceMs * Math.max(1, inFlight / workerCount);
      this.#nowMs += serviceMs / Math.min(workerCount, inFlight);
      const isLate = rttMs >= deadlineMs;
      const isLeft = isLate || this.#count % 10 < 10 * leftRatio;
      const stayedMs = isLate ? deadlineMs : rttMs / (isLeft ? 2 : 1);
      const startMs = this.#nowMs - stayedMs;
      const outcome = isLate ? "dropped" : isLeft ? "ignore" : "success";
      const position = inFlight;
      const sample = { startMs, endMs: this.#nowMs, inFlight, position, outcome, demand } as const;
      this.law.record({ ...sample, isLeft });
      this.seen.push(this.law.limit);
    }
    return this;
  }
}

describe("KneeLimit", () => {
  it.each([1, 50, 1_000])("finds ten workers from %i, with a queue for the load", (initial) => {
    // A step lasts two round trips, and those take five seconds at first where it begins at 1,000.
    const { law } = new Service({ initial }).serve({ workerCount: 10, seconds: 90 });
    // 1.1 x 10 and ln(11) / ln(3).
    expect(law.steadyLimit).toBeGreaterThanOrEqual(12);
    expect(law.steadyLimit).toBeLessThanOrEqual(14);
    expect(law.baselineMs).toBeCloseTo(50, -1);
  });

  it("keeps a longer queue where little more is asked than can be done", () => {
    const demand = { loadRatio: 1.1, criticalRatio: 0.1 };
    const { law } = new Service().serve({ workerCount: 10, seconds: 30, demand });
    // ln(17) / ln(1.1); the most is knee + 18.
    expect(law.steadyLimit).toBeGreaterThanOrEqual(37);
    expect(law.steadyLimit).toBeLessThanOrEqual(41);
  });

  it("keeps a queue of the root of the knee where requests wait for a permit", () => {
    const demand = { loadRatio: 1.1, criticalRatio: 0.1, waitingCount: 3 };
    const { law } = new Service().serve({ workerCount: 10, seconds: 30, demand });
    expect(law.steadyLimit).toBeGreaterThanOrEqual(13);
    expect(law.steadyLimit).toBeLessThanOrEqual(16);
  });

  it("tells how many permits keep the service busy, once it knows", () => {
    const service = new Service();
    expect(service.law.busyCount).toBe(0);
    service.serve({ workerCount: 10, seconds: 30 });
    expect(service.law.busyCount).toBeCloseTo(11, 0);
  });

  /** Lower classes find no room from three quarters of it on: so much need not be in flight. */
  it.each([
    { inFlightMax: 76, loadRatio: 1.3, grown: 150 },
    { inFlightMax: 73, loadRatio: 1.3, grown: 100 },
    { inFlightMax: 76, loadRatio: 1, grown: 100 },
  ])("is $grown with $inFlightMax of 100 in use and no queue, at a load of $loadRatio", (row) => {
    const { inFlightMax, loadRatio, grown } = row;
    const service = new Service({ initial: 100 });
    const demand = { loadRatio, criticalRatio: 0.1 };
    service.serve({ workerCount: 1_000, seconds: 3, inFlightMax, demand });
    expect(service.law.steadyLimit).toBe(grown);
  });

  it.each([
    { loadRatio: 11, grown: 40 },
    { loadRatio: 9, grown: 30 },
  ])("grows from 20 to $grown in a step at a load of $loadRatio", ({ loadRatio, grown }) => {
    const service = new Service({ initial: 20 });
    const demand = { loadRatio, criticalRatio: 0.1 };
    service.serve({ workerCount: 1_000, seconds: 2, demand });
    expect(service.law.steadyLimit).toBe(grown);
  });

  // Ten requests of two seconds, one after the other, take twenty.
  it.each([
    { loadRatio: 41, grown: 2 },
    { loadRatio: 39, grown: 1 },
  ])("is $grown of one permit after ten slow seconds at a load of $loadRatio", (row) => {
    const { loadRatio, grown } = row;
    const service = new Service({ initial: 1 });
    const demand = { loadRatio, criticalRatio: 0.1 };
    service.serve({ workerCount: 200, serviceMs: 2_000, seconds: 10, demand });
    expect(service.law.steadyLimit).toBe(grown);
  });

  it("follows a loss of half of the workers, and their return", () => {
    const service = new Service().serve({ workerCount: 10, seconds: 30 });
    service.serve({ workerCount: 5, seconds: 10 });
    expect(service.law.steadyLimit).toBeLessThanOrEqual(11);
    service.serve({ workerCount: 10, seconds: 20 });
    expect(service.law.steadyLimit).toBeGreaterThanOrEqual(12);
  });

  it("looks at less only now and then, where it has found what it looked for", () => {
    const service = new Service().serve({ workerCount: 10, seconds: 30 });
    const from = service.seen.length;
    service.serve({ workerCount: 10, seconds: 60 });
    const seen = service.seen.slice(from);
    const lowCount = seen.filter((limit) => limit < 10).length;
    expect(lowCount / seen.length).toBeLessThan(0.1);
  });

  it("leaves a service alone that has room", () => {
    const demand = { loadRatio: 1, criticalRatio: 0.1 };
    const room = { workerCount: 100, seconds: 30, demand, inFlightMax: 20 };
    const service = new Service().serve(room);
    expect(Math.min(...service.seen)).toBe(50);
    expect(service.law.facts()["probeCount"]).toBe(0);
  });

  it("falls to four times what is in use where a calm follows", () => {
    const demand = { loadRatio: 1, criticalRatio: 0.1 };
    const calm = { workerCount: 100, seconds: 30, demand, inFlightMax: 20 };
    expect(new Service({ initial: 1_000 }).serve(calm).law.limit).toBe(80);
  });

  it("keeps within its bounds", () => {
    const low = new Service({ min: 20 }).serve({ workerCount: 4, seconds: 30 });
    expect(Math.min(...low.seen)).toBe(20);
    const high = new Service({ initial: 2, max: 6 }).serve({ workerCount: 50, seconds: 30 });
    expect(high.law.limit).toBe(6);
  });

  it("lets critical requests pass by what chance brings, and by more where they need much", () => {
    const criticalLimitAt = (criticalRatio: number): number => {
      const demand = { loadRatio: 3, criticalRatio };
      return new Service().serve({ workerCount: 10, seconds: 30, demand }).law.criticalLimit;
    };
    expect(criticalLimitAt(0.1)).toBeGreaterThanOrEqual(12 + 3 * 3);
    expect(criticalLimitAt(0.8)).toBeGreaterThan(12 + 60);
    // Nobody is served more by a queue that never ends.
    expect(criticalLimitAt(2)).toBeLessThan(20);
  });

  it("holds critical requests to the limit before anything was seen", () => {
    expect(new KneeLimit(limits).criticalLimit).toBe(50);
  });

  it("looks at less where callers leave, and begins anew once some are served", () => {
    const service = new Service().serve({ workerCount: 10, seconds: 30 });
    service.leave({ afterMs: 1_000, seconds: 20 });
    expect(service.law.limit).toBe(1);
    service.serve({ workerCount: 4, seconds: 10 });
    expect(service.law.limit).toBeGreaterThanOrEqual(6);
    expect(service.law.limit).toBeLessThanOrEqual(10);
  });

  // Times that end at deadlines are all the same, as those of a service without a queue are.
  it("takes a request that is given up at its deadline as one that takes longer", () => {
    const service = new Service({ initial: 30 });
    service.serve({ workerCount: 1, seconds: 90, deadlineMs: 1_000 });
    expect(service.law.steadyLimit).toBeLessThanOrEqual(5);
    expect(service.law.baselineMs).toBeCloseTo(50, -1);
  });

  it("looks ever less often where they leave with one in flight, too", () => {
    const service = new Service();
    service.leave({ afterMs: 200, seconds: 600 });
    const { probeCount = 0 } = service.law.facts();
    expect(probeCount).toBeGreaterThan(2);
    service.leave({ afterMs: 200, seconds: 600 });
    expect(service.law.facts()["probeCount"]).toBeLessThanOrEqual(probeCount + 2);
    expect(service.law.limit).toBe(50);
  });

  it("leaves a service alone whose callers mostly leave sooner than it answers", () => {
    const service = new Service().serve({ workerCount: 10, seconds: 30 });
    const from = service.seen.length;
    service.serve({ workerCount: 10, seconds: 30, leftRatio: 0.8, inFlightMax: 8 });
    // One step of looking at less, from 11 in use.
    expect(Math.min(...service.seen.slice(from))).toBeGreaterThanOrEqual(7);
  });

  it("learns nothing from what tells nothing, from windows, and from readings", () => {
    const law = new KneeLimit(limits);
    for (let endMs = 100; endMs < 5_000; endMs += 10) {
      const demand = overload;
      law.record({ startMs: 0, endMs, inFlight: 50, position: 50, outcome: "ignore", demand });
    }
    law.update({
      rttMs: 5_000,
      sampleCount: 100,
      droppedCount: 0,
      inFlightMax: 50,
      servedPerMs: 0.1,
      endMs: 6_000,
    });
    expect(law.limit).toBe(50);
    expect(law.baselineMs).toBeUndefined();
  });
});
