import { beforeEach, describe, expect, it } from "vitest";
import { sha256 } from "../../../../src/app/base/sha256.js";
import type { FailureMode } from "../../../../src/core/limits/limit.js";
import type { Verdict } from "../../../../src/core/limits/verdict.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import { Decider, type DeciderEvent } from "../../../../src/decide/rate-limit/decider.js";
import { Pressure } from "../../../../src/decide/rate-limit/pressure.js";
import type { RateLimitQuery } from "../../../../src/decide/rate-limit/query.js";
import type { Policy } from "../../../../src/policy/policy.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { decideQuery } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { noSwitches } from "../../../support/switches.js";

const requestsInFlightMax = 4;
const farAwayMs = Number.POSITIVE_INFINITY;
const failureModes: readonly FailureMode[] = ["local", "allow", "deny", "error"];

let clock: FakeClock;
let store: FaultyStore;
let counters: DecisionCounters;
let pressure: Pressure;
let events: DeciderEvent[];
let policy: Policy;
let decider: Decider;

beforeEach(() => {
  clock = new FakeClock();
  store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  counters = new DecisionCounters();
  pressure = new Pressure({
    loopDelayMsMax: 100,
    requestsInFlightMax,
    requestsInFlightBytesMax: 1_000_000,
    asksStoreWhenLate: false,
  });
  events = [];
  policy = testPolicy(
    failureModes.map((mode) => ({
      path: [mode],
      effect: [testLimit(3, { onStoreFailure: mode })],
    })),
  );
  decider = new Decider({
    policies: { current: () => policy },
    store,
    createLocalStore: () => new MemoryLimitStore({ clock }),
    clock,
    counters,
    pressure,
    storeBudgetMs: 10,
    newKeysPerSecondMax: 1_000_000,
    switches: noSwitches,
    nearLimitRatio: 0.8,
    digest: sha256,
    replicaCount: () => 1,
    onEvent: (event) => events.push(event),
  });
});

function query(key: string, hits = 1): RateLimitQuery {
  const entries = [{ key, value: "v" }];
  return { domain: "shop", descriptors: [{ entries, hits, isRefund: false }] };
}

/** How a call ends. */
function outcome(promise: Promise<Verdict>): Promise<string> {
  return promise.then(
    ({ isDenied }) => (isDenied ? "denied" : "ok"),
    (thrown: { readonly code: string }) => thrown.code,
  );
}

/** Asks; the turn ends before the answer, should it be needed. */
async function decide(key: string): Promise<string> {
  const answer = outcome(decideQuery(decider, query(key), farAwayMs));
  clock.runTurns();
  return answer;
}

/** Turns of the event loop that stay late: a second of them is an overload. */
function stayLate(turnCount = 12): void {
  for (let turn = 0; turn < turnCount; turn += 1) {
    pressure.tick(clock.monotonicMs(), clock.monotonicMs());
    clock.advance(101);
  }
}

const overloadedOutcomes: ReadonlyArray<{ mode: FailureMode; outcomes: readonly string[] }> = [
  { mode: "local", outcomes: ["ok", "ok", "ok", "denied"] },
  { mode: "allow", outcomes: ["ok", "ok", "ok", "ok"] },
  { mode: "deny", outcomes: ["denied", "denied", "denied", "denied"] },
  { mode: "error", outcomes: ["OVERLOADED", "OVERLOADED", "OVERLOADED", "OVERLOADED"] },
];

describe("Decider, overloaded", () => {
  it.each(overloadedOutcomes)(
    "answers $mode at once when the event loop stays late, without asking the store",
    async ({ mode, outcomes }) => {
      stayLate();
      const answers: string[] = [];
      for (let i = 0; i < 4; i += 1)
        answers.push(await outcome(decideQuery(decider, query(mode), farAwayMs)));
      expect(answers).toEqual(outcomes);
      expect(store.batches).toEqual([]);
      expect(decider.overloadCause).toBe("loopDelay");
      expect(Object.fromEntries(counters.fallbackByMode[mode])).toEqual({ OVERLOADED: 4 });
    },
  );

  it.each(overloadedOutcomes)(
    "answers $mode at once when too many requests are in work",
    async ({ mode, outcomes }) => {
      store.fault = { kind: "hang" };
      const waiting = Array.from({ length: requestsInFlightMax }, () =>
        outcome(decideQuery(decider, query("allow"), farAwayMs)),
      );
      clock.runTurns();
      await settlePromises();
      const askedCount = store.batches.length;
      const answers: string[] = [];
      for (let i = 0; i < 4; i += 1)
        answers.push(await outcome(decideQuery(decider, query(mode), farAwayMs)));
      expect(answers).toEqual(outcomes);
      expect(store.batches.length).toBe(askedCount);
      expect(decider.overloadCause).toBe("inFlight");
      await clock.advanceAsync(10);
      expect(await Promise.all(waiting)).toEqual(["ok", "ok", "ok", "ok"]);
      expect(decider.overloadCause).toBeUndefined();
      expect(pressure.inFlightCount).toBe(0);
    },
  );

  it("counts calls as answered that failed, were refused or met no limit", async () => {
    await decide("error");
    await decide("nothing");
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    expect(await decide("error")).toBe("STORE_UNAVAILABLE");
    expect(await outcome(decideQuery(decider, query("error"), clock.monotonicMs()))).toBe(
      "DEADLINE_PASSED",
    );
    expect(pressure.inFlightCount).toBe(0);
  });

  it("still refuses what the store refused a moment ago", async () => {
    stayLate(10);
    for (let i = 0; i < 4; i += 1) await decide("allow");
    stayLate(2);
    expect(decider.overloadCause).toBe("loopDelay");
    expect(await decide("allow")).toBe("denied");
    expect(counters.refusedFromMemoryCount).toBe(1);
    expect(counters.fallbackByMode.allow.size).toBe(0);
  });

  it("asks the store when it stood still for once, however long", async () => {
    pressure.tick(clock.monotonicMs(), clock.monotonicMs());
    clock.advance(5_000);
    expect(await decide("deny")).toBe("ok");
    pressure.tick(clock.monotonicMs(), farAwayMs);
    expect(await decide("deny")).toBe("ok");
    expect(store.batches).toHaveLength(2);
  });

  it("asks the store again when the loop has kept up for a while", async () => {
    stayLate();
    expect(await decide("deny")).toBe("denied");
    pressure.tick(clock.monotonicMs(), clock.monotonicMs() + 600);
    clock.advance(600);
    pressure.tick(clock.monotonicMs(), farAwayMs);
    expect(await decide("deny")).toBe("ok");
    expect(store.batches).toHaveLength(1);
  });

  it("keeps what was used locally until the overload is said to have ended", async () => {
    stayLate();
    for (let i = 0; i < 3; i += 1) await decide("local");
    expect(await decide("local")).toBe("denied");
    decider.noteEvent({ kind: "overloadBegan", cause: "loopDelay" });
    expect(await decide("local")).toBe("denied");
    decider.noteEvent({ kind: "overloadEnded" });
    expect(await decide("local")).toBe("ok");
    expect(events.map(({ kind }) => kind)).toEqual(["overloadBegan", "overloadEnded"]);
  });

  it("keeps what was used locally while the store is away, whatever else has ended", async () => {
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    for (let i = 0; i < 12; i += 1) {
      await decide("local");
      clock.advance(20);
    }
    expect(decider.isDegraded).toBe(true);
    expect(await decide("local")).toBe("denied");
    decider.noteEvent({ kind: "overloadEnded" });
    expect(await decide("local")).toBe("denied");
  });
});

describe("Decider, after the caller's deadline", () => {
  it("charges nobody for what waited too long for its turn", async () => {
    const deadlineMs = clock.monotonicMs() + 50;
    const late = outcome(decideQuery(decider, query("local"), deadlineMs));
    const patient = outcome(decideQuery(decider, query("local"), farAwayMs));
    // The turn ends only when this one's time is over.
    clock.stall(60);
    clock.runTurns();
    expect([await late, await patient]).toEqual(["DEADLINE_PASSED", "ok"]);
    expect(store.batches.flat().map(({ multiplicity }) => multiplicity)).toEqual([1]);
    expect(Object.fromEntries(counters.failedByCode)).toEqual({ DEADLINE_PASSED: 1 });
    expect(counters.fallbackByMode.local.size).toBe(0);
  });

  it("answers by failure mode when only the store's part of the time is used up", async () => {
    const deadlineMs = clock.monotonicMs() + 50;
    const answer = outcome(decideQuery(decider, query("deny"), deadlineMs));
    clock.stall(35);
    clock.runTurns();
    expect(await answer).toBe("denied");
    expect(store.batches).toEqual([]);
    expect(Object.fromEntries(counters.fallbackByMode.deny)).toEqual({ OVERLOADED: 1 });
  });

  it("drops an answer of the store that comes too late", async () => {
    const deadlineMs = clock.monotonicMs() + 50;
    const answer = outcome(decideQuery(decider, query("local"), deadlineMs));
    clock.runTurns();
    // The process stands still with the store's answer already there.
    clock.stall(60);
    expect(await answer).toBe("DEADLINE_PASSED");
    expect(counters.okCount).toBe(0);
  });

  it("uses up no local share for a caller who has gone while the store hung", async () => {
    store.fault = { kind: "hang" };
    const deadlineMs = clock.monotonicMs() + 8;
    const answer = outcome(decideQuery(decider, query("local"), deadlineMs));
    clock.runTurns();
    await settlePromises();
    clock.stall(500);
    await clock.advanceAsync(0, 1);
    clock.advance(10);
    expect(await answer).toBe("DEADLINE_PASSED");
    expect(counters.fallbackByMode.local.size).toBe(0);
  });
});

describe("a decider without memory", () => {
  it("says of a call that is not read how it is answered, and counts it by its own cause", () => {
    expect(decider.shed()).toBeUndefined();
    pressure.memoryFull = "residentMemory";
    expect(decider.shed()).toBe("deny");
    expect(Object.fromEntries(counters.fallbackByMode.deny)).toEqual({ MEMORY_FULL: 1 });
    expect(counters.deniedCount).toBe(1);
    // Another policy has failure modes of its own.
    policy = testPolicy([
      { path: ["a"], effect: [testLimit(3, { onStoreFailure: "error" })] },
      { path: ["b"], effect: [testLimit(3, { onStoreFailure: "allow" })] },
    ]);
    expect(decider.shed()).toBe("error");
    expect(Object.fromEntries(counters.failedByCode)).toEqual({ MEMORY_FULL: 1 });
    policy = testPolicy([{ path: ["b"], effect: [testLimit(3, { onStoreFailure: "allow" })] }]);
    expect(decider.shed()).toBe("allow");
    expect(counters.okCount).toBe(1);
    const override = { hits: 3, unit: "day", unitMultiplier: 1 } as const;
    const carrying = { entries: [{ key: "b", value: "1" }], hits: 1, isRefund: false, override };
    decider.prepare({ domain: "shop", descriptors: [carrying] }, false);
    expect(decider.shed()).toBe("deny");
    pressure.memoryFull = undefined;
    expect(decider.shed()).toBeUndefined();
  });
});
