import { describe, expect, it } from "vitest";
import type {
  NodeReport,
  ServiceShares,
  ShareSnapshot,
} from "../../../../src/core/feedback/feedback.js";
import {
  FleetLoop,
  type FleetLoopParts,
  lapsedSnapshot,
} from "../../../../src/core/feedback/feedback-loop.js";
import {
  loopServicesMax,
  type ServiceLoopSettings,
} from "../../../../src/core/feedback/feedback-settings.js";
import { lawOf } from "../../../simulation/law-scenarios.js";
import { decideOf, nodeReportOf } from "../../../support/node-reports.js";

function settingsOf(given: Partial<ServiceLoopSettings> = {}): ServiceLoopSettings {
  return {
    service: "orders",
    law: { law: "fixed", limits: { initial: 100, min: 1, max: 100 } },
    maxInFlight: undefined,
    configuredShare: 1_024,
    highRatio: undefined,
    sigmoid: undefined,
    gate: undefined,
    ...given,
  };
}

/** A loop that is asked each second, of Envoys that follow at once. */
class Rig {
  readonly loop: FleetLoop;
  nowMs: number;
  snapshot: ShareSnapshot | undefined;

  constructor(settings: Partial<ServiceLoopSettings> = {}, parts: Partial<FleetLoopParts> = {}) {
    const services = [settingsOf(settings)];
    this.nowMs = parts.nowMs ?? 0;
    this.loop = new FleetLoop({ term: 1, leaderId: "one", services, nowMs: 0, ...parts });
  }

  /** What holds for the service after a second with these reports; undefined: it is left out. */
  second(...reports: readonly Partial<NodeReport>[]): ServiceShares | undefined {
    this.nowMs += 1_000;
    const reported = reports.map((given) =>
      nodeReportOf({ atMs: this.nowMs, held: this.#held(given.nodeId ?? "edge-1"), ...given }),
    );
    this.snapshot = decideOf(this.loop, reported, this.nowMs);
    return this.snapshot.services.get("orders");
  }

  /** The same for some seconds. */
  seconds(count: number, ...reports: readonly Partial<NodeReport>[]): ServiceShares | undefined {
    for (let i = 1; i < count; i += 1) this.second(...reports);
    return this.second(...reports);
  }

  shares(): Readonly<Record<string, number>> {
    const shares = this.snapshot?.services.get("orders")?.shares ?? [];
    return Object.fromEntries([...shares].map(([id, share]) => [id, share.default + share.high]));
  }

  #held(nodeId: string): number {
    return this.shares()[nodeId] ?? 0;
  }
}

const edges = [{ nodeId: "edge-1" }, { nodeId: "edge-2" }];

describe("FleetLoop", () => {
  it("names its snapshots by term, leader and a version that grows", () => {
    const rig = new Rig();
    rig.seconds(2);
    const { term, leaderId, version } = rig.snapshot ?? {};
    expect({ term, leaderId, version }).toEqual({ term: 1, leaderId: "one", version: 2 });
  });

  it("says of a service what its Envoys do, together", () => {
    const rig = new Rig();
    rig.second(...edges);
    const shares = rig.second(...edges);
    expect(shares?.limit).toBe(100);
    expect(rig.shares()).toEqual({ "edge-1": 50, "edge-2": 50 });
    expect(shares?.facts).toEqual({ inFlight: 10, rps: 200, overflowPerSecond: 0, rttMs: 50 });
    expect([shares?.gate, shares?.rejectRatio]).toEqual(["open", 0]);
  });

  it("says how many requests Envoys' breakers refuse a second, whatever the time between", () => {
    const rig = new Rig();
    const overflow = (overflowCount: number, atMs = rig.nowMs + 1_000) =>
      rig.second({ overflowCount, atMs })?.facts.overflowPerSecond;
    expect(overflow(30)).toBe(30);
    expect(overflow(20)).toBe(20);
    rig.second();
    expect(overflow(20)).toBe(10);
    expect(overflow(0)).toBe(0);
  });

  it("gives a newcomer a part like the others' at once, though it has told of little yet", () => {
    const rig = new Rig();
    const busy = edges.map((edge) => ({ ...edge, inFlight: 30 }));
    rig.seconds(6, ...busy);
    rig.second(...busy, { nodeId: "edge-3", inFlight: 1 });
    expect(rig.shares()).toEqual({ "edge-1": 34, "edge-2": 33, "edge-3": 33 });
    // By then what it asks is known.
    rig.seconds(12, ...busy, { nodeId: "edge-3", inFlight: 1 });
    expect(rig.shares()["edge-3"]).toBeLessThan(20);
  });

  // One that came two seconds after the others once had 5 of 100, and refused what it was asked.
  it("gives it to who comes soon after the fleet has started, and not to those that start", () => {
    const rig = new Rig();
    const busy = { nodeId: "edge-1", inFlight: 30 };
    const quiet = { nodeId: "edge-2", inFlight: 0, rps: 1, latency: { count: 1, sumMs: 1 } };
    rig.seconds(2, busy, quiet);
    expect(rig.shares()["edge-2"]).toBeLessThan(20);
    rig.second(busy, quiet, { ...quiet, nodeId: "edge-3" });
    expect(rig.shares()["edge-3"]).toBeGreaterThan(25);
    expect(rig.shares()["edge-2"]).toBeLessThan(20);
  });

  it("expects of a newcomer what its own identity's Envoys are asked, whatever others tell", () => {
    const rig = new Rig();
    const busy = edges.map((edge) => ({ ...edge, owner: "honest", inFlight: 9 }));
    const liar = { nodeId: "liar", owner: "liar", inFlight: 1_000_000 };
    rig.seconds(6, ...busy, liar);
    rig.second(...busy, { nodeId: "edge-3", owner: "honest", inFlight: 1 }, liar);
    expect(rig.shares()).toEqual({ "edge-1": 16, "edge-2": 16, "edge-3": 16, liar: 52 });
  });

  // Another replica knows no owners but those of its own streams.
  it("takes nothing of an Envoy from another identity than the one that it is of", () => {
    const rig = new Rig();
    const mine = edges.map((edge) => ({ ...edge, owner: "honest" }));
    rig.seconds(6, ...mine);
    const other = { nodeId: "edge-2", owner: "liar", inFlight: 1_000_000, held: 1_024 };
    for (let i = 0; i < 10; i += 1) {
      const shares = rig.second(...mine, { ...other, atMs: rig.nowMs + 500 });
      expect(shares?.facts.inFlight).toBe(10);
      expect(rig.shares()).toEqual({ "edge-1": 50, "edge-2": 50 });
    }
  });

  it("leaves an Envoy its configured default until its first request", () => {
    const rig = new Rig();
    const latency = { count: 0, sumMs: 0 };
    const idle = { nodeId: "edge-3", inFlight: 0, rps: 0, latency, held: 1_024 };
    rig.seconds(9, ...edges, idle);
    expect(rig.shares()).toEqual({ "edge-1": 50, "edge-2": 50 });
    rig.second(...edges, { ...idle, inFlight: 1 });
    expect(rig.shares()).toEqual({ "edge-1": 34, "edge-2": 33, "edge-3": 33 });
    rig.second(...edges, { ...idle, held: 33 });
    expect(rig.shares()["edge-3"]).toBeGreaterThan(0);
  });

  it("gives an Envoy its share whose requests are answered within a millisecond", () => {
    const rig = new Rig();
    const latency = { count: 20, sumMs: 0 };
    rig.seconds(3, ...edges, { nodeId: "edge-3", inFlight: 0, rps: 20, latency });
    expect(rig.shares()["edge-3"]).toBeGreaterThan(0);
  });

  it("leaves a service out that no Envoy has spoken of, and again after all are gone", () => {
    const rig = new Rig();
    expect(rig.second()).toBeUndefined();
    expect(rig.second({})).toBeDefined();
    expect(rig.seconds(14)).toBeDefined();
    expect(rig.second()).toBeUndefined();
  });

  it("adds up no Envoy that is silent, and keeps its share until its lease is over", () => {
    const rig = new Rig();
    rig.seconds(5, ...edges);
    const full = { nodeId: "edge-2", inFlight: 50, overflowCount: 900 };
    expect(rig.seconds(4, { nodeId: "edge-2" })?.facts.inFlight).toBe(5);
    expect(rig.shares()).toEqual({ "edge-1": 50, "edge-2": 50 });
    rig.seconds(10, full);
    expect(rig.shares()).toEqual({ "edge-1": 50, "edge-2": 50 });
    // It goes at fifteen seconds; two more, and nobody can give it its share any more.
    rig.seconds(3, full);
    expect(rig.shares()).toEqual({ "edge-2": 100 });
  });

  /** Four Envoys before 20 servers of 50 ms, all of them full; the last one tells what it likes. */
  function queueing(rig: Rig, count: number, last?: Partial<NodeReport>): readonly number[] {
    return Array.from({ length: count }, () => {
      const limit = rig.snapshot?.services.get("orders")?.limit ?? 40;
      const sumMs = 100 * Math.max(50, 2.5 * limit);
      const full = { inFlight: limit / 4, overflowCount: 9, latency: { count: 100, sumMs } };
      const three = [1, 2, 3].map((i) => ({ nodeId: `edge-${i}`, ...full }));
      const heldAtMs = rig.nowMs + 1_000;
      const fourth = { nodeId: "edge-4", ...full, heldAtMs, ...last };
      return rig.second(...three, fourth)?.limit ?? 0;
    });
  }

  it("measures the capacity with what silent Envoys have, where they take their layers", () => {
    const rig = new Rig({ law: lawOf("gradient", { initial: 40, max: 40 }), configuredShare: 10 });
    queueing(rig, 30);
    const limits = queueing(rig, 40, { atMs: rig.nowMs });
    // With 0.8 of 20 servers in a probe, and more than 1.5 x 20 after it; without the fourth: 26.
    expect(Math.min(...limits)).toBe(16);
    expect(limits.filter((limit) => limit > 16 && limit < 33)).toEqual([]);
  });

  it("does not probe while too much of its limit is where nobody hears it", () => {
    const rig = new Rig({ law: lawOf("gradient", { initial: 40, max: 40 }), configuredShare: 10 });
    queueing(rig, 30);
    const gone = { atMs: rig.nowMs, heldAtMs: rig.nowMs };
    const limits = queueing(rig, 14, gone);
    expect(Math.min(...limits)).toBeGreaterThan(33);
    // Its lease is over: the limit is for the other three.
    expect(Math.min(...queueing(rig, 40, gone))).toBeLessThan(20);
  });

  it("keeps an Envoy that takes its layers, though its numbers have stopped", () => {
    const rig = new Rig();
    rig.seconds(3, ...edges);
    for (let i = 0; i < 30; i += 1) {
      rig.second({ nodeId: "edge-2" }, { atMs: 1_000, held: 50, heldAtMs: rig.nowMs + 1_000 });
    }
    expect(rig.shares()).toEqual({ "edge-1": 50, "edge-2": 50 });
  });

  it("leaves half of the limit to others where one Envoy does not follow", () => {
    const rig = new Rig();
    rig.seconds(5, ...edges);
    const unruly = { nodeId: "edge-2", held: 1_024 };
    rig.seconds(5, { nodeId: "edge-1" }, unruly);
    expect(rig.shares()).toEqual({ "edge-1": 50, "edge-2": 50 });
    rig.seconds(2, { nodeId: "edge-1", overflowCount: 900 }, { ...unruly, held: 90 });
    expect(rig.shares()["edge-1"]).toBe(50);
    // What it uses beyond that is gone in any case.
    rig.seconds(2, { nodeId: "edge-1" }, { ...unruly, inFlight: 80 });
    expect(rig.shares()["edge-1"]).toBe(20);
    rig.seconds(8, { nodeId: "edge-1" }, { nodeId: "edge-2", inFlight: 0 });
    expect(rig.shares()["edge-1"]).toBeGreaterThanOrEqual(50);
  });

  it("gives back what a short fall took, though one Envoy may go by a large default", () => {
    const signal = { target: 10_000, critical: 100_000, smoothingRatio: 1, pid: undefined };
    const law = { law: "signal", limits: { initial: 100, min: 10, max: 100 }, ...signal } as const;
    const rig = new Rig({ law });
    const busy = { nodeId: "edge-1", inFlight: 60, overflowCount: 900 };
    rig.seconds(6, busy, { nodeId: "edge-2", inFlight: 1 });
    const before = rig.shares()["edge-1"] ?? 0;
    expect(before).toBeGreaterThan(80);
    rig.seconds(6, busy);
    rig.loop.read("orders", { reading: 100_000, nowMs: rig.nowMs });
    rig.seconds(2, busy);
    expect(rig.shares()["edge-1"]).toBeLessThan(20);
    rig.loop.read("orders", { reading: 10_000, nowMs: rig.nowMs });
    // For who may let in 1,024 half of the limit counts, as if that were all that it uses.
    rig.seconds(4, busy);
    expect(rig.shares()["edge-1"]).toBe(50);
    rig.seconds(6, busy);
    expect(rig.shares()).toEqual({ "edge-1": 100 });
  });

  it("learns nothing while a step of the law is on its way, and waits six seconds at most", () => {
    const law = lawOf("aimd", { initial: 64 });
    const late = { inFlight: 1, latency: { count: 0, sumMs: 0 }, errorCount: 20 };
    const limits = (held: object): readonly (number | undefined)[] => {
      const rig = new Rig({ law });
      rig.seconds(3, { latency: { count: 0, sumMs: 0 } });
      return Array.from({ length: 10 }, () => rig.second({ ...late, ...held })?.limit);
    };
    // A second to hear that it is active, and one of which all is known to be after that.
    expect(limits({})).toEqual([32, 32, 16, 16, 8, 8, 4, 4, 2, 2]);
    expect(limits({ held: 64 })).toEqual([32, 32, 32, 32, 32, 32, 32, 16, 16, 16]);
  });

  it("lets maxInFlight stand above the law", () => {
    expect(new Rig({ maxInFlight: 7 }).second({})?.limit).toBe(7);
  });

  it("gives HIGH a share of its own, by what Envoys say or by what the policy says", () => {
    const rig = new Rig({ highRatio: 0.2 });
    const reported = rig.second({ inFlight: 100, highInFlight: 50 });
    expect(reported?.shares.get("edge-1")).toEqual({ default: 34, high: 66 });
    const guessed = new Rig({ highRatio: 0.2 }).second({ inFlight: 20 });
    expect(guessed?.shares.get("edge-1")).toEqual({ default: 80, high: 20 });
    const without = new Rig().second({ inFlight: 20, highInFlight: 0 });
    expect(without?.shares.get("edge-1")).toEqual({ default: 100, high: 0 });
    // No route of the policy is there, but requests are.
    const unplanned = new Rig().second({ inFlight: 20, highInFlight: 10 });
    expect(unplanned?.shares.get("edge-1")).toEqual({ default: 50, high: 50 });
  });

  it.each([
    { highInFlight: undefined, probed: 16 },
    { highInFlight: 2, probed: 16 },
    { highInFlight: 12, probed: 26 },
  ])("leaves HIGH its $highInFlight at each of two Envoys in a probe to $probed", (row) => {
    const law = lawOf("gradient", { initial: 40, min: 1, max: 40 });
    const rig = new Rig({ law, configuredShare: 20 });
    const { highInFlight, probed } = row;
    const high = highInFlight === undefined ? {} : { highInFlight };
    const full = edges.map((edge) => ({ ...edge, inFlight: 20, overflowCount: 9, ...high }));
    let least = 40;
    for (let i = 0; i < 12; i += 1) least = Math.min(least, rig.second(...full)?.limit ?? 40);
    expect(least).toBe(probed);
  });

  it("leaves each Envoy that has requests one in a probe, and counts no idle one", () => {
    const law = lawOf("gradient", { initial: 4, min: 1, max: 4 });
    const rig = new Rig({ law, configuredShare: 2 });
    const full = edges.map((edge) => ({ ...edge, inFlight: 2, overflowCount: 9 }));
    const idle = { nodeId: "edge-3", inFlight: 0, rps: 0, latency: { count: 0, sumMs: 0 } };
    let least = 4;
    for (let i = 0; i < 30; i += 1) least = Math.min(least, rig.second(...full, idle)?.limit ?? 4);
    expect(least).toBe(2);
  });

  it("follows a signal from one second to the next, at its pace", () => {
    const limits = { initial: 1_000, min: 10, max: 1_000 };
    const signal = { target: 10_000, critical: 100_000, smoothingRatio: 1, pid: undefined };
    const rig = new Rig({ law: { law: "signal", limits, ...signal } });
    expect(rig.second({})?.limit).toBe(1_000);
    rig.loop.read("orders", { reading: 55_000, nowMs: rig.nowMs });
    expect(rig.second({})?.limit).toBe(505);
    rig.loop.read("orders", { reading: 100_000, nowMs: rig.nowMs });
    expect([rig.second({})?.limit, rig.seconds(3, {})?.limit]).toEqual([151, 10]);
    rig.loop.read("nothing", { reading: 1, nowMs: rig.nowMs });
  });

  it("closes the gate by the wait to be expected, and opens it when that is not known", () => {
    const sigmoid = { midpoint: { kind: "duration", ms: 1_000 }, slopePerSecond: 2 } as const;
    const gate = { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 };
    const rig = new Rig({ sigmoid, gate });
    const queue = { waitingCount: 4_000, serviceMs: 50 };
    rig.loop.noteQueue("orders", queue, rig.nowMs + 1_000);
    rig.loop.noteQueue("nothing", queue, rig.nowMs);
    const shut = rig.second({});
    // 4,000 / (100 x 20 a second) are 2 s: 1 / (1 + exp(-2)) are refused.
    expect(shut?.rejectRatio).toBeCloseTo(0.881, 3);
    expect(shut?.gate).toBe("closed");
    expect(rig.seconds(3, {})?.gate).toBe("closed");
    // Who was kept away comes back a part each second, though nobody is known to wait.
    const after = [1, 2, 3].map(() => rig.second({}));
    expect(after.map((one) => one?.gate)).toEqual(["limiting", "limiting", "open"]);
  });

  it("leaves reports aside that make no sense, and counts them", () => {
    const rig = new Rig();
    const latency = { count: 1, sumMs: Number.NaN };
    const bad = [{ service: "other" }, { inFlight: -1 }, { held: Number.NaN }, { latency }];
    expect(rig.second(...bad, { atMs: Number.NaN })).toBeUndefined();
    expect(rig.loop.strayCount).toBe(5);
  });

  it("decides for so many services, and counts the others", () => {
    const services = Array.from({ length: loopServicesMax + 2 }, (_, i) =>
      settingsOf({ service: `service-${i}` }),
    );
    const loop = new FleetLoop({ term: 1, leaderId: "one", services, nowMs: 0 });
    expect(loop.leftOutCount).toBe(2);
    loop.take(nodeReportOf({ service: `service-${loopServicesMax}` }), 0);
    expect([loop.strayCount, loop.crowdedOutCount]).toEqual([1, 0]);
  });

  it("goes on with a service whose settings stay, and begins a changed one where it was", () => {
    const rig = new Rig();
    rig.seconds(3, ...edges);
    rig.loop.configure([settingsOf(), settingsOf({ service: "new" })], rig.nowMs);
    expect(rig.second(...edges)?.facts.rttMs).toBe(50);
    expect(rig.shares()).toEqual({ "edge-1": 50, "edge-2": 50 });
    rig.loop.configure([settingsOf({ maxInFlight: 60 })], rig.nowMs);
    const changed = rig.second(...edges);
    expect([changed?.limit, changed?.facts.rttMs]).toEqual([60, undefined]);
    expect(rig.shares()).toEqual({ "edge-1": 30, "edge-2": 30 });
    rig.loop.configure([], rig.nowMs);
    expect(rig.second(...edges)).toBeUndefined();
  });
});

describe("FleetLoop, after a snapshot that holds no more", () => {
  it("begins with its limit and latency, and gives it to whoever asks at once", () => {
    const law = lawOf("gradient", { initial: 10, min: 2, max: 400 });
    const from: ShareSnapshot = {
      term: 3,
      leaderId: "two",
      version: 9,
      services: new Map([["orders", lastShares]]),
    };
    const rig = new Rig({ law }, { term: 4, from: lapsedSnapshot(from) });
    const shares = rig.second(...edges.map((edge) => ({ ...edge, held: 1_024 })));
    expect(shares).toMatchObject({ limit: 80, gate: "open", facts: { minRttMs: 40 } });
    expect(rig.shares()).toEqual({ "edge-1": 40, "edge-2": 40 });
  });

  const lastShares: ServiceShares = {
    limit: 80,
    shares: new Map([["edge-1", { default: 80, high: 0 }]]),
    rejectRatio: 1,
    gate: "closed",
    facts: { inFlight: 60, rps: 1_000, overflowPerSecond: 0, rttMs: 50, minRttMs: 40 },
  };
});

describe("FleetLoop, as a new leader", () => {
  function successor(rig: Rig, settings: Partial<ServiceLoopSettings> = {}): Rig {
    const from = rig.snapshot;
    if (from === undefined) throw new Error("nobody has led");
    return new Rig(settings, { term: 2, leaderId: "two", from, nowMs: rig.nowMs });
  }

  it("begins with the last snapshot, and does not jump", () => {
    const first = new Rig({ law: lawOf("gradient", { initial: 80 }) });
    first.seconds(3, ...edges);
    const next = successor(first, { law: lawOf("gradient", { initial: 300 }) });
    expect(next.second()?.limit).toBe(80);
    expect(next.shares()).toEqual(first.shares());
    expect([next.snapshot?.term, next.snapshot?.version]).toEqual([2, 1]);
  });

  it("begins with the last baseline, and takes no queue for it that it finds", () => {
    const law = lawOf("gradient", { initial: 40, max: 80 });
    const first = new Rig({ law });
    const queued = {
      inFlight: 40,
      rps: 450,
      overflowCount: 900,
      latency: { count: 450, sumMs: 450 * 89 },
    };
    while (first.snapshot?.services.get("orders")?.facts.minRttMs !== 50) {
      const isProbe = (first.snapshot?.services.get("orders")?.limit ?? 40) < 30;
      first.second(isProbe ? { inFlight: 16, overflowCount: 900 } : queued);
    }
    const limit = first.seconds(3, queued)?.limit;
    const next = successor(first, { law });
    expect(next.seconds(10, queued)?.facts.minRttMs).toBe(50);
    // By a baseline of 89 ms it would have grown twofold.
    expect(next.seconds(10, queued)?.limit).toBe(limit);
  });

  it("has room for a newcomer's share above its default when all have told what they hold", () => {
    const first = new Rig({ configuredShare: 5 });
    first.seconds(3, ...edges);
    const next = successor(first, { configuredShare: 5 });
    next.second(...edges, { nodeId: "edge-3", held: 5 });
    expect(next.shares()["edge-3"]).toBe(5);
    next.seconds(5, ...edges, { nodeId: "edge-3" });
    expect(next.shares()).toEqual({ "edge-1": 34, "edge-2": 33, "edge-3": 33 });
  });

  it("gives back what a short fall took, though one Envoy is out of reach by its default", () => {
    const signal = { target: 10_000, critical: 100_000, smoothingRatio: 1, pid: undefined };
    const law = { law: "signal", limits: { initial: 100, min: 10, max: 100 }, ...signal } as const;
    const busy = { nodeId: "edge-1", inFlight: 60, overflowCount: 900 };
    const first = new Rig({ law });
    first.seconds(6, busy, { nodeId: "edge-2", inFlight: 1 });
    expect(first.shares()["edge-1"]).toBeGreaterThan(80);
    const next = successor(first, { law });
    next.seconds(2, busy);
    next.loop.read("orders", { reading: 100_000, nowMs: next.nowMs });
    next.seconds(3, busy);
    expect(next.shares()["edge-1"]).toBeLessThan(10);
    next.loop.read("orders", { reading: 10_000, nowMs: next.nowMs });
    next.seconds(4, busy);
    expect(next.shares()["edge-1"]).toBeGreaterThan(80);
  });

  it("keeps a gate closed within its hysteresis", () => {
    const sigmoid = { midpoint: { kind: "duration", ms: 1_000 }, slopePerSecond: 2 } as const;
    const gate = { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 };
    const first = new Rig({ sigmoid, gate });
    first.loop.noteQueue("orders", { waitingCount: 4_000, serviceMs: 50 }, 1_000);
    first.second({});
    const next = successor(first, { sigmoid, gate });
    // 1.6 s are 0.77: a gate that was open would only limit there.
    next.loop.noteQueue("orders", { waitingCount: 3_200, serviceMs: 50 }, next.nowMs + 1_000);
    expect(next.second({})?.gate).toBe("closed");
  });

  it("goes on with its own snapshot where the term is the same", () => {
    const first = new Rig();
    first.seconds(4, ...edges);
    const from = first.snapshot;
    if (from === undefined) throw new Error("nobody has led");
    const again = new Rig({}, { from, nowMs: first.nowMs });
    again.second(...edges);
    expect(again.snapshot?.version).toBe(5);
  });
});
