import { beforeEach, describe, expect, it } from "vitest";
import type { FailureMode, Limit } from "../../../../src/core/limits/limit.js";
import type { Verdict } from "../../../../src/core/limits/verdict.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider, DeciderEvent } from "../../../../src/decide/rate-limit/decider.js";
import type { DescriptorQuery } from "../../../../src/decide/rate-limit/query.js";
import type { Policy } from "../../../../src/policy/policy.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider, decideQuery } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { type TestRule, testLimit, testPolicy } from "../../../support/policies.js";

let clock: FakeClock;
let store: FaultyStore;
let counters: DecisionCounters;
let events: DeciderEvent[];
let policy: Policy | undefined;
let decider: Decider;
let replicaCount: number;

beforeEach(() => {
  clock = new FakeClock();
  store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  counters = new DecisionCounters();
  events = [];
  replicaCount = 1;
  decider = createTestDecider({
    policies: { current: () => policy },
    store,
    createLocalStore: () => new MemoryLimitStore({ clock, keysMax: 2 }),
    clock,
    counters,
    replicaCount: () => replicaCount,
    onEvent: (event) => events.push(event),
  });
});

function usePolicy(...rules: readonly TestRule[]): void {
  policy = testPolicy(rules);
}

function ask(key: string, fields: Partial<DescriptorQuery> = {}): DescriptorQuery {
  return { entries: [{ key, value: "v" }], hits: 1, isRefund: false, ...fields };
}

const farAwayMs = Number.POSITIVE_INFINITY;

async function decide(
  descriptors: readonly DescriptorQuery[],
  { domain = "shop", deadlineMs = Number.POSITIVE_INFINITY } = {},
): Promise<Verdict> {
  const promise = decideQuery(decider, { domain, descriptors }, deadlineMs);
  promise.catch(() => undefined);
  clock.runTurns();
  await settlePromises();
  await clock.advanceAsync(store.fault.kind === "hang" ? 10 : 0, 1);
  return promise;
}

function failing(onStoreFailure: FailureMode, hits = 4): readonly Limit[] {
  return [testLimit(hits, { onStoreFailure })];
}

describe("Decider", () => {
  it("lets a burst through, then denies with the time to come back", async () => {
    usePolicy({ path: ["user"], effect: [testLimit(2)] });
    const verdicts = [];
    for (let i = 0; i < 3; i += 1) verdicts.push(await decide([ask("user")]));
    expect(verdicts.map((verdict) => verdict.isDenied)).toEqual([false, false, true]);
    expect(verdicts[2]?.statuses).toMatchObject([
      { isOver: true, limitRemaining: 0, durationUntilResetUs: 30_000_000 },
    ]);
    expect(counters.forPolicy(policy as Policy)[0]).toMatchObject({
      ok: 2,
      over: 1,
      shadowOver: 0,
    });
    expect([counters.okCount, counters.deniedCount]).toEqual([2, 1]);
  });

  it("charges nobody when one of several descriptors is over", async () => {
    usePolicy(
      { path: ["small"], effect: [testLimit(1)] },
      { path: ["large"], effect: [testLimit(9)] },
    );
    await decide([ask("small"), ask("large")]);
    const denied = await decide([ask("small"), ask("large")]);
    expect(denied.statuses.map((status) => [status.isOver, status.limitRemaining])).toEqual([
      [true, 0],
      [false, 8],
    ]);
    const peeked = await decide([ask("large", { hits: 0 })]);
    expect(peeked.statuses[0]?.limitRemaining).toBe(8);
  });

  it("passes what a shadow limit would deny, and counts it", async () => {
    usePolicy({ path: ["user"], effect: [testLimit(1, { role: "shadow" })] });
    await decide([ask("user")]);
    const verdict = await decide([ask("user")]);
    expect(verdict).toMatchObject({ isDenied: false, statuses: [{ isOver: false }] });
    expect(counters.forPolicy(policy as Policy)[0]).toMatchObject({
      ok: 1,
      over: 0,
      shadowOver: 1,
    });
  });

  it("asks no store for unknown domains, unmatched and unlimited descriptors", async () => {
    usePolicy({ path: ["root"], effect: { kind: "unlimited" } });
    expect(await decide([ask("user")], { domain: "else" })).toEqual({
      isDenied: false,
      statuses: [{ isOver: false }],
    });
    expect(await decide([ask("user"), ask("root")])).toEqual({
      isDenied: false,
      statuses: [{ isOver: false }, { isOver: false, limitRemaining: 4_294_967_295 }],
    });
    expect(store.batches).toEqual([]);
    expect(counters).toMatchObject({ unknownDomainCount: 1, unmatchedDescriptorCount: 1 });
  });

  it("refuses to decide without a policy, and after the caller's deadline", async () => {
    policy = undefined;
    await expect(decide([ask("user")])).rejects.toMatchObject({ code: "POLICY_MISSING" });
    usePolicy({ path: ["user"], effect: [testLimit(1)] });
    const deadlineMs = clock.monotonicMs();
    await expect(decide([ask("user")], { deadlineMs })).rejects.toMatchObject({
      code: "DEADLINE_PASSED",
    });
    expect(Object.fromEntries(counters.failedByCode)).toEqual({
      POLICY_MISSING: 1,
      DEADLINE_PASSED: 1,
    });
  });

  it("gives the store 60 % of what the caller still waits", async () => {
    usePolicy({ path: ["user"], effect: failing("allow") });
    store.fault = { kind: "hang" };
    let isAnswered = false;
    const deadlineMs = clock.monotonicMs() + 10;
    void decideQuery(decider, { domain: "shop", descriptors: [ask("user")] }, deadlineMs).then(
      () => {
        isAnswered = true;
      },
    );
    clock.runTurns();
    await clock.advanceAsync(5.9);
    expect(isAnswered).toBe(false);
    await clock.advanceAsync(0.1);
    expect(isAnswered).toBe(true);
  });
});

describe("Decider, while the store is away", () => {
  it.each<{ mode: FailureMode; replicas: number; okCount: number }>([
    { mode: "local", replicas: 1, okCount: 4 },
    { mode: "local", replicas: 2, okCount: 2 },
    { mode: "local", replicas: 99, okCount: 1 },
    { mode: "allow", replicas: 1, okCount: 8 },
    { mode: "deny", replicas: 1, okCount: 0 },
  ])(
    "lets $okCount of 8 pass by $mode with $replicas replicas",
    async ({ mode, replicas, okCount }) => {
      usePolicy({ path: ["user"], effect: failing(mode) });
      store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
      replicaCount = replicas;
      const verdicts: Verdict[] = [];
      for (let i = 0; i < 8; i += 1) verdicts.push(await decide([ask("user")]));
      expect(verdicts.filter((verdict) => !verdict.isDenied)).toHaveLength(okCount);
      expect(Object.fromEntries(counters.fallbackByMode[mode])).toEqual({ STORE_UNAVAILABLE: 8 });
    },
  );

  it("fails the call with its cause where one limit says error", async () => {
    usePolicy({ path: ["a"], effect: failing("error") }, { path: ["b"], effect: failing("allow") });
    store.fault = { kind: "hang" };
    await expect(decide([ask("b"), ask("a")])).rejects.toMatchObject({ code: "STORE_TIMEOUT" });
  });

  it("tells whom it denies to come back in a second", async () => {
    usePolicy({ path: ["user"], effect: failing("deny", 1_000) });
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    const verdict = await decide([ask("user")]);
    expect(verdict.statuses).toMatchObject([
      { isOver: true, limitRemaining: 0, durationUntilResetUs: 1_000_000 },
    ]);
  });

  it("keeps shadow limits harmless, also those that deny on failure", async () => {
    const limit = testLimit(1, { role: "shadow", onStoreFailure: "deny" });
    usePolicy({ path: ["user"], effect: [limit] });
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    expect((await decide([ask("user")])).isDenied).toBe(false);
  });

  it("denies by quota only together, an allowed quota limit counting as not over", async () => {
    usePolicy(
      { path: ["a"], effect: [testLimit(1, { role: "quota", onStoreFailure: "allow" })] },
      { path: ["b"], effect: [testLimit(1, { role: "quota", onStoreFailure: "deny" })] },
    );
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    expect((await decide([ask("a"), ask("b")])).isDenied).toBe(false);
    expect((await decide([ask("b")])).isDenied).toBe(true);
  });

  it("decides a key that the full local store cannot keep as one never seen", async () => {
    usePolicy(...["a", "b", "c"].map((key) => ({ path: [key], effect: failing("local", 1) })));
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    for (const key of ["a", "b", "c", "c"]) expect((await decide([ask(key)])).isDenied).toBe(false);
    expect((await decide([ask("a")])).isDenied).toBe(true);
    expect((await decide([ask("c", { hits: 2 })])).isDenied).toBe(true);
  });

  it("opens its circuit, answers on, and drops local use when the store is back", async () => {
    usePolicy({ path: ["user"], effect: failing("local", 30) });
    store.fault = { kind: "hang" };
    for (let i = 0; i < 15; i += 1) await decide([ask("user")]);
    expect(decider.isDegraded).toBe(true);
    store.fault = { kind: "none" };
    const remaining = async (): Promise<number | undefined> =>
      (await decide([ask("user", { hits: 0 })])).statuses[0]?.limitRemaining;
    const whileOpen = await remaining();
    await clock.advanceAsync(500);
    // The store charged the asks whose answers never came: they count, although local answered
    // them.
    const afterwards = await remaining();
    expect(decider.isDegraded).toBe(false);
    expect([whileOpen, afterwards]).toEqual([15, 30 - store.batches.length + 1]);
    expect(events.map((event) => event.kind).filter((kind) => kind !== "batchFailed")).toEqual([
      "circuitOpened",
      "circuitClosed",
    ]);

    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    expect(await remaining()).toBe(30);
  });
});

describe("Decider, for calls that ask the same", () => {
  it("asks the store once a turn, and tells each call what was left after it", async () => {
    usePolicy({ path: ["user"], effect: [testLimit(5)] });
    const prepared = decider.prepare({ domain: "shop", descriptors: [ask("user")] });
    const verdicts = Promise.all(
      Array.from({ length: 7 }, () => decider.decidePrepared(prepared, 1, farAwayMs)),
    );
    clock.runTurns();
    const statuses = (await verdicts).map(({ isDenied, statuses: [status] }) => [
      isDenied,
      status?.isOver,
      status?.limitRemaining,
      status?.durationUntilResetUs,
    ]);
    expect(statuses).toEqual([
      [false, false, 4, 12_000_000],
      [false, false, 3, 24_000_000],
      [false, false, 2, 36_000_000],
      [false, false, 1, 48_000_000],
      [false, false, 0, 60_000_000],
      [true, true, 0, 12_000_000],
      [true, true, 0, 12_000_000],
    ]);
    expect(store.batches.map((batch) => batch.map((one) => one.multiplicity))).toEqual([[7]]);
    expect(counters.forPolicy(policy as Policy)[0]).toMatchObject({ ok: 5, over: 2 });
  });

  it("shows a denied call the other limits as they stand", async () => {
    usePolicy({ path: ["a"], effect: [testLimit(2)] }, { path: ["b"], effect: [testLimit(9)] });
    const prepared = decider.prepare({ domain: "shop", descriptors: [ask("a"), ask("b")] });
    const verdicts = Promise.all(
      Array.from({ length: 3 }, () => decider.decidePrepared(prepared, 1, farAwayMs)),
    );
    clock.runTurns();
    const remaining = (await verdicts).map(({ statuses }) =>
      statuses.map(({ isOver, limitRemaining }) => [isOver, limitRemaining]),
    );
    expect(remaining).toEqual([
      [
        [false, 1],
        [false, 8],
      ],
      [
        [false, 0],
        [false, 7],
      ],
      [
        [true, 0],
        [false, 7],
      ],
    ]);
  });

  it("keeps calls with other hits, and shadow limits, apart", async () => {
    usePolicy(
      { path: ["user"], effect: [testLimit(9)] },
      { path: ["trial"], effect: [testLimit(1, { role: "shadow" })] },
    );
    const user = decider.prepare({ domain: "shop", descriptors: [ask("user")] });
    const trial = decider.prepare({ domain: "shop", descriptors: [ask("trial")] });
    const verdicts = Promise.all([
      decider.decidePrepared(user, 1, farAwayMs),
      decider.decidePrepared(user, 3, farAwayMs),
      decider.decidePrepared(user, [0], farAwayMs),
      decider.decidePrepared(trial, 1, farAwayMs),
      decider.decidePrepared(trial, 1, farAwayMs),
    ]);
    clock.runTurns();
    const remaining = (await verdicts).map(({ statuses }) => statuses[0]?.limitRemaining);
    expect(remaining).toEqual([8, 5, 5, 0, 0]);
    expect(store.batches[0]?.map((one) => one.multiplicity)).toEqual([1, 1, 1, 1, 1]);
    expect(counters.forPolicy(policy as Policy)[1]).toMatchObject({ ok: 1, shadowOver: 1 });
  });
});

describe("Decider, for a key that is over", () => {
  it("asks the store at most once a second until the key can be allowed", async () => {
    usePolicy({ path: ["user"], effect: [testLimit(2)] });
    for (let i = 0; i < 3; i += 1) await decide([ask("user")]);
    expect(store.batches).toHaveLength(3);
    const waits: (number | undefined)[] = [];
    for (let tenth = 0; tenth < 100; tenth += 1) {
      const verdict = await decide([ask("user")]);
      expect(verdict.isDenied).toBe(true);
      waits.push(verdict.statuses[0]?.durationUntilResetUs);
      await clock.advanceAsync(100);
    }
    expect(store.batches.length).toBeLessThanOrEqual(3 + 11);
    expect([waits[0], waits[50], waits[99]]).toEqual([30_000_000, 25_000_000, 20_100_000]);
    expect(counters.refusedFromMemoryCount).toBe(100 - (store.batches.length - 3));
  });

  it("asks again at the very time when the key can be allowed", async () => {
    usePolicy({ path: ["user"], effect: [testLimit(600)] });
    await decide([ask("user", { hits: 600 })]);
    expect((await decide([ask("user")])).isDenied).toBe(true);
    await clock.advanceAsync(99);
    expect((await decide([ask("user")])).isDenied).toBe(true);
    await clock.advanceAsync(1);
    expect((await decide([ask("user")])).isDenied).toBe(false);
  });

  it("still asks for less, looks, refunds and settled costs", async () => {
    usePolicy(
      { path: ["user"], effect: [testLimit(5)] },
      { path: ["tokens"], effect: [testLimit(5, { role: "settle" })] },
    );
    expect((await decide([ask("user", { hits: 9 })])).isDenied).toBe(true);
    expect((await decide([ask("user", { hits: 10 })])).isDenied).toBe(true);
    expect(store.batches).toHaveLength(1);
    expect((await decide([ask("user", { hits: 5 })])).isDenied).toBe(false);
    expect((await decide([ask("user", { hits: 9 })])).isDenied).toBe(true);
    expect((await decide([ask("user", { hits: 0 })])).isDenied).toBe(false);
    await decide([ask("user", { hits: 2, isRefund: true })]);
    await decide([ask("tokens", { hits: 9 })]);
    const asked = store.batches.length;
    await decide([ask("tokens", { hits: 9 })]);
    expect(store.batches.length).toBe(asked + 1);
  });

  it("denies another request that needs the same key, and says nothing of others", async () => {
    usePolicy({ path: ["a"], effect: [testLimit(1)] }, { path: ["b"], effect: [testLimit(9)] });
    await decide([ask("a"), ask("b")]);
    await decide([ask("a"), ask("b")]);
    const asked = store.batches.length;
    const verdict = await decide([ask("b"), ask("a")]);
    expect(verdict.statuses.map(({ isOver, limitRemaining }) => [isOver, limitRemaining])).toEqual([
      [undefined, undefined],
      [true, 0],
    ]);
    expect(store.batches.length).toBe(asked);
  });

  it("forgets refusals with the policy they were made under", async () => {
    usePolicy({ path: ["user"], effect: [testLimit(1)] });
    await decide([ask("user")]);
    expect((await decide([ask("user")])).isDenied).toBe(true);
    usePolicy({ path: ["user"], effect: [testLimit(1, { burst: 3 })] });
    expect((await decide([ask("user")])).isDenied).toBe(false);
  });
});

describe("DecisionCounters", () => {
  it("keeps the counts of a rule over a reload and drops those of rules that went", async () => {
    usePolicy(
      { path: ["gone"], effect: [testLimit(9)] },
      { path: ["kept"], effect: [testLimit(9)] },
    );
    await decide([ask("gone"), ask("kept")]);
    usePolicy({ path: ["kept"], effect: [testLimit(5)] });
    await decide([ask("kept")]);
    expect(counters.forPolicy(policy as Policy)).toMatchObject([
      { domain: "shop", label: "kept", ok: 2, over: 0, shadowOver: 0 },
    ]);
    expect(counters.forPolicy(policy as Policy)).toHaveLength(1);
    usePolicy({ path: ["gone"], effect: [testLimit(9)] });
    expect(counters.forPolicy(policy as Policy)).toMatchObject([{ label: "gone", ok: 0 }]);
  });

  it("sorts decision times into their buckets", () => {
    for (const elapsedMs of [0.05, 0.1, 0.11, 1_000, 5_000]) counters.countLatency(elapsedMs);
    expect(counters.latencyCounts).toEqual([2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    expect(counters.latencySumMs).toBeCloseTo(6_000.26);
  });
});
