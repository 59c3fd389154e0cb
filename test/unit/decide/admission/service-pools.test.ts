import { describe, expect, it } from "vitest";
import type {
  PermitHolder,
  PermitShare,
  SharesPermits,
} from "../../../../src/core/admission/permit-share.js";
import type { SignalReading } from "../../../../src/core/concurrency/concurrency-limit.js";
import type { SignalUpdate } from "../../../../src/core/concurrency/signal-update.js";
import { tickMs } from "../../../../src/decide/admission/admission.js";
import {
  expiryLooksMax,
  keyIdleMsMax,
  poolKeyCharsMax,
} from "../../../../src/decide/admission/service-pools.js";
import type { ServicePolicy } from "../../../../src/policy/services/service-policy.js";
import { defaultBlocks } from "../../../../src/policy/upstream/default-upstream.js";
import { AdmissionRig, servicesPolicy, testService } from "../../../support/admission.js";

const byDatabase: ServicePolicy["concurrency"] = {
  settings: {
    law: "signal",
    limits: { initial: 100, min: 10, max: 1_000 },
    target: 10_000,
    critical: 100_000,
    smoothingRatio: 1,
    pid: undefined,
  },
  per: { header: "x-database", names: ["orders", "users"], keysMax: 3 },
  signal: undefined,
  sources: ["extProc"],
  feedback: [],
};

const signalSource = {
  place: { kind: "redis", key: "lag" },
  everyMs: 5_000,
  timeoutMs: 2_000,
  staleAfterMs: 30_000,
  whenMissing: "max",
} as const;

const loadOfNothing = {
  orcaCpuRatio: undefined,
  orcaMemoryRatio: undefined,
  latencyMultiple: undefined,
  errorRatio: undefined,
  queueWaitMs: undefined,
  combine: "max",
} as const;

function forAll(reading: SignalReading): SignalUpdate {
  return { ...forKeys({}), rest: reading };
}

function forKeys(
  readings: Readonly<Record<string, number>>,
  gone: readonly string[] = [],
): SignalUpdate {
  return { isAnew: false, byKey: new Map(Object.entries(readings)), gone, rest: undefined };
}

/** Shares that remember who opened them. */
class OpenedShares implements SharesPermits {
  readonly holders = new Set<PermitHolder>();

  open(holder: PermitHolder): PermitShare {
    this.holders.add(holder);
    return {
      permits: () => Math.floor(holder.fleetLimit() / 2),
      othersInUse: () => 0,
      isLeased: () => true,
      close: () => this.holders.delete(holder),
    };
  }

  get names(): readonly string[] {
    return [...this.holders].map(({ name }) => name).toSorted();
  }
}

function ask(rig: AdmissionRig, database: string) {
  return rig.ask({ headers: { "x-database": database } });
}

function limitsOf(rig: AdmissionRig): readonly number[] {
  const nowMs = rig.clock.monotonicMs();
  return [...rig.service().pools.all()].map(({ pool }) => pool.limit(nowMs));
}

describe("ServicePools", () => {
  it("follow readings key by key, so that one busy database starves no other", () => {
    const rig = new AdmissionRig([testService({}, { concurrency: byDatabase })]);
    ask(rig, "orders");
    ask(rig, "users");
    expect(limitsOf(rig)).toEqual([100, 100]);
    rig.admission.read("orders", forKeys({ users: 55_000 }));
    expect(limitsOf(rig)).toEqual([100, 505]);
    // What holds for all is for those without a reading of their own.
    rig.admission.read("orders", forAll(100_000));
    expect(limitsOf(rig)).toEqual([10, 505]);
    rig.admission.read("orders", forKeys({}, ["users"]));
    expect(limitsOf(rig)).toEqual([10, 10]);
  });

  it("keep no key that is longer than a name, but its digest", () => {
    const rig = new AdmissionRig([testService({}, { concurrency: byDatabase })]);
    const keys = ["a", "b"].map((last) => "d".repeat(poolKeyCharsMax) + last);
    for (const key of keys) ask(rig, key);
    const names = [...rig.service().pools.all()].map(({ pool }) => pool.name);
    expect(names).toEqual(keys.map((key) => `6:orders/digest-of-digest-of-${key}`));
  });

  it("tell what readings change: each name of the policy, and the largest change of others", () => {
    const signal = byDatabase.per && { ...byDatabase, per: { ...byDatabase.per, keysMax: 10 } };
    const rig = new AdmissionRig([testService({}, { concurrency: signal })]);
    for (const key of ["orders", "users", "secret-a", "secret-b"]) ask(rig, key);
    rig.admission.read("orders", forAll("max"));
    rig.clock.advance(tickMs);
    rig.events.length = 0;
    // Once a second is enough: what came between is left out, and what came back to where it was.
    rig.admission.read("orders", forKeys({ orders: 90_000, users: 90_000, "secret-b": 100_000 }));
    const last = { orders: 55_000, users: 5_000, "secret-a": 32_500, "secret-b": 99_000 };
    rig.admission.read("orders", forKeys(last));
    expect(rig.events).toEqual([]);
    rig.clock.advance(tickMs);
    const common = { kind: "capacityChanged", service: "orders", from: 1_000 };
    expect(rig.events).toEqual([
      { ...common, key: "orders", to: 505, reading: 55_000 },
      { ...common, key: "other", to: 10, reading: 100_000 },
    ]);
  });

  it("make the largest reading a load where the policy says so, for as long as it holds", () => {
    const load = { ...loadOfNothing, signalReading: 100 };
    const concurrency = { ...byDatabase, signal: { ...signalSource, thresholds: [] } };
    const rig = new AdmissionRig([testService({ load }, { concurrency })]);
    const outside = () =>
      rig.service().blocks.admission?.health?.signals.signal("outside", rig.clock.monotonicMs());
    rig.admission.read("orders", { ...forKeys({ orders: 50, users: 80 }), rest: "max" });
    expect(outside()).toBe(0.8);
    rig.clock.advance(signalSource.staleAfterMs);
    expect(outside()).toBe(0.8);
    rig.clock.advance(1_000);
    expect(outside()).toBe(0.4);
    // What is gone renews nothing; what is new does.
    rig.admission.read("orders", forKeys({}, ["users"]));
    expect(outside()).toBe(0.4);
    rig.admission.read("orders", forKeys({ orders: 50 }));
    expect(outside()).toBe(0.5);
  });

  it("keep to a limit of their own where only this replica has the reading", () => {
    const shares = new OpenedShares();
    const { settings } = byDatabase;
    const ofReplica = { ...settings, isOfReplica: true };
    const concurrency = { ...byDatabase, per: undefined, settings: ofReplica };
    const rig = new AdmissionRig([testService({}, { concurrency })], { shares });
    expect(shares.names).toEqual([]);
    expect(rig.service().isLimited).toBe(false);
    rig.admission.read("orders", forAll(100_000));
    expect(limitsOf(rig)).toEqual([10]);
    const verdicts = rig.askMany(11, { priority: "critical" }).map(({ verdict }) => verdict);
    expect(verdicts.filter((verdict) => verdict === "admitted")).toHaveLength(10);
    // What the fleet may have is shared all the same.
    rig.policy = servicesPolicy([testService({ maxInFlight: 8 }, { concurrency })]);
    expect(limitsOf(rig)).toEqual([4]);
    expect(shares.names).toEqual(["6:orders"]);
  });

  it("make the fullest of the host's readings a load where the policy says so", () => {
    const host = { cpu: 0.8, memory: 0.9, runQueue: 4 };
    const rig = new AdmissionRig([
      testService({ load: { ...loadOfNothing, host } }),
      testService({ load: loadOfNothing }, { name: "other" }),
    ]);
    const loadOf = (name?: string) =>
      rig.service(name).blocks.admission?.health?.signals.signal("host", rig.clock.monotonicMs());
    expect(loadOf()).toBeUndefined();
    rig.admission.readHost({ memory: 0.6, cpuPressure: 1 }, 3_000);
    expect(loadOf()).toBe(0);
    rig.admission.readHost({ cpu: 0.4, memory: 0.87 }, 3_000);
    expect(loadOf()).toBeCloseTo(0.7);
    rig.admission.readHost({ cpu: 0.4, runQueue: 8 }, 3_000);
    expect(loadOf()).toBe(2);
    // Without newer ones it holds for a while. What says nothing changes nothing.
    rig.clock.advance(3_000);
    rig.admission.readHost({ cpuPressure: 1 }, 3_000);
    expect(loadOf()).toBe(2);
    rig.clock.advance(1_000);
    expect(loadOf()).toBe(1);
    expect(loadOf("other")).toBeUndefined();
  });

  it("hold a key to thresholds of its own", () => {
    const thresholds = [{ name: "users", target: 10, critical: 20 }];
    const concurrency = { ...byDatabase, signal: { ...signalSource, thresholds } };
    const rig = new AdmissionRig([testService({}, { concurrency })]);
    ask(rig, "orders");
    ask(rig, "users");
    rig.admission.read("orders", forAll(15));
    expect(limitsOf(rig)).toEqual([1_000, 505]);
  });

  it("let keys go that nobody has asked for in a while, and keep those in use", () => {
    const shares = new OpenedShares();
    const timeouts = { ...defaultBlocks.timeouts, requestMs: 2 * keyIdleMsMax };
    const service = testService({}, { concurrency: byDatabase, timeouts });
    const rig = new AdmissionRig([service], { shares });
    ask(rig, "orders").complete();
    ask(rig, "users");
    rig.clock.advance(keyIdleMsMax - 1_000);
    ask(rig, "a").complete();
    expect([...rig.service().pools.all()]).toHaveLength(3);
    rig.clock.advance(2_000);
    expect(shares.names).toEqual(["6:orders/digest-of-a", "6:orders/users"]);
  });

  it("look at a part of many keys at a time", () => {
    const per = byDatabase.per && { ...byDatabase.per, keysMax: 1_000 };
    const rig = new AdmissionRig([testService({}, { concurrency: { ...byDatabase, per } })]);
    for (let i = 0; i < expiryLooksMax + 5; i += 1) ask(rig, `k${i}`).complete();
    const { pools } = rig.service();
    pools.expire(rig.clock.monotonicMs() + keyIdleMsMax);
    expect([...pools.all()]).toHaveLength(5);
    pools.expire(rig.clock.monotonicMs() + keyIdleMsMax);
    expect([...pools.all()]).toHaveLength(0);
  });

  it("forget what another source said once a new one says something", () => {
    const rig = new AdmissionRig([testService({}, { concurrency: byDatabase })]);
    ask(rig, "orders");
    ask(rig, "users");
    rig.admission.read("orders", forKeys({ orders: 100_000, users: 100_000 }));
    rig.admission.read("orders", { ...forKeys({ users: 55_000 }), isAnew: true, rest: "max" });
    expect(limitsOf(rig)).toEqual([1_000, 505]);
    rig.admission.read("orders", { ...forAll(32_500), isAnew: true });
    expect(limitsOf(rig)).toEqual([753, 753]);
    expect([...rig.service().pools.readings()]).toEqual([["", 32_500]]);
  });

  it("remember readings of as many keys as are held", () => {
    const rig = new AdmissionRig([testService({}, { concurrency: byDatabase })]);
    rig.admission.read("orders", forKeys({ a: 55_000, b: 55_000, c: 55_000, d: 55_000 }));
    ask(rig, "d");
    ask(rig, "a");
    expect(limitsOf(rig)).toEqual([100, 505]);
  });

  it("give a key that comes later the last reading that is about it", () => {
    const rig = new AdmissionRig([testService({}, { concurrency: byDatabase })]);
    rig.admission.read("orders", forAll(100_000));
    rig.admission.read("orders", forKeys({ users: 5_000 }));
    rig.admission.read("orders", forKeys({ "what is this": 55_000 }));
    ask(rig, "users");
    ask(rig, "orders");
    ask(rig, "what is this");
    expect(limitsOf(rig)).toEqual([1_000, 10, 505]);
  });

  it("let in who waits when a reading makes room", () => {
    const queue = { sizeMax: 5, waitMsMax: 2_000, order: "fifo", codel: undefined } as const;
    const rig = new AdmissionRig([testService({ queue }, { concurrency: byDatabase })]);
    rig.admission.read("orders", forAll(100_000));
    for (let i = 0; i < 10; i += 1) ask(rig, "users");
    const waiting = ask(rig, "users");
    expect(waiting.verdict).toBe("waiting");
    rig.admission.read("orders", forKeys({ users: 55_000 }));
    expect(waiting.verdict).toBe("admitted");
  });

  it("let a key go that has nothing in it when a new one needs its room", () => {
    const shares = new OpenedShares();
    const rig = new AdmissionRig([testService({}, { concurrency: byDatabase })], { shares });
    const visits = ["orders", "a", "b"].map((database) => ask(rig, database));
    ask(rig, "c");
    expect(shares.names).toEqual([
      "6:orders/digest-of-a",
      "6:orders/digest-of-b",
      "6:orders/orders",
      "6:orders/other",
    ]);
    visits[1]?.complete();
    ask(rig, "d");
    expect(shares.names).toContain("6:orders/digest-of-d");
    expect(shares.names).not.toContain("6:orders/digest-of-a");
    expect([...rig.service().pools.all()]).toHaveLength(4);
  });

  it("share limits of the fleet, and not what a replica learns by itself", () => {
    const shares = new OpenedShares();
    const aimd = {
      ...byDatabase,
      per: undefined,
      settings: {
        law: "aimd",
        limits: { initial: 20, min: 1, max: 100 },
        increase: 1,
        decreaseRatio: 0.5,
      },
    } as const;
    const rig = new AdmissionRig([testService({}, { concurrency: aimd })], { shares });
    expect(limitsOf(rig)).toEqual([20]);
    expect(shares.names).toEqual([]);
    // Within its share of a bound that the policy adds.
    rig.policy = servicesPolicy([testService({ maxInFlight: 30 }, { concurrency: aimd })]);
    expect(limitsOf(rig)).toEqual([15]);
    expect(shares.names).toEqual(["6:orders"]);
    rig.policy = servicesPolicy([testService({}, { concurrency: aimd })]);
    expect(limitsOf(rig)).toEqual([20]);
    expect(shares.names).toEqual([]);
  });

  it("ask for no share where admission is off, and give it up with the service", () => {
    const shares = new OpenedShares();
    const whole = { ...byDatabase, per: undefined };
    const rig = new AdmissionRig([testService(undefined, { concurrency: whole })], { shares });
    rig.ask();
    expect(shares.names).toEqual([]);
    rig.policy = servicesPolicy([testService({}, { concurrency: whole })]);
    rig.service();
    expect(shares.names).toEqual(["6:orders"]);
    rig.policy = servicesPolicy([]);
    rig.ask();
    expect(shares.names).toEqual([]);
  });

  it("make a law anew only where its own settings change", () => {
    const whole = { ...byDatabase, per: undefined };
    const rig = new AdmissionRig([testService({}, { concurrency: whole })]);
    rig.admission.read("orders", forAll(55_000));
    rig.policy = servicesPolicy([testService({ lateAfterMs: 5 }, { concurrency: { ...whole } })]);
    expect(limitsOf(rig)).toEqual([505]);
    // It begins with the last reading, so that an edit opens nothing for the time of a poll.
    const settings = { ...byDatabase.settings, limits: { initial: 77, min: 10, max: 2_000 } };
    rig.policy = servicesPolicy([testService({}, { concurrency: { ...whole, settings } })]);
    expect(limitsOf(rig)).toEqual([1_005]);
  });

  it("serve who waits in pools that a policy replaced", () => {
    const queue = { sizeMax: 5, waitMsMax: 2_000, order: "fifo", codel: undefined } as const;
    const one = {
      ...byDatabase.settings,
      law: "fixed",
      limits: { initial: 1, min: 1, max: 1 },
    } as const;
    const split = { ...byDatabase, settings: one };
    const rig = new AdmissionRig([testService({ queue }, { concurrency: split })]);
    const first = ask(rig, "users");
    const waiting = ask(rig, "users");
    const whole = { ...split, per: undefined };
    rig.policy = servicesPolicy([testService({ queue }, { concurrency: whole })]);
    // Who is in a pool that is gone counts among all requests of the service.
    const newcomer = ask(rig, "users");
    expect(newcomer.verdict).toBe("waiting");
    first.complete();
    expect([waiting.verdict, newcomer.verdict]).toEqual(["admitted", "waiting"]);
    waiting.complete();
    expect(newcomer.verdict).toBe("admitted");
    expect(rig.service().pools.whole.inUseCount()).toBe(1);
  });
});
