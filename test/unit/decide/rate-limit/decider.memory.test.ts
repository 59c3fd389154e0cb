import { beforeEach, describe, expect, it } from "vitest";
import { sha256 } from "../../../../src/app/base/sha256.js";
import { noOverrides } from "../../../../src/core/limits/override-table.js";
import { unknownVerdict, type Verdict } from "../../../../src/core/limits/verdict.js";
import { Explainer } from "../../../../src/decide/inspect/explain.js";
import { KeyInspector } from "../../../../src/decide/inspect/key-inspector.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import { Pressure } from "../../../../src/decide/rate-limit/pressure.js";
import type { DescriptorQuery } from "../../../../src/decide/rate-limit/query.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider, decideQuery } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { noSwitches } from "../../../support/switches.js";

const hour = { unit: "hour", periodUs: 3_600_000_000 } as const;
const policy = testPolicy([
  { path: ["one"], effect: [testLimit(1)] },
  { path: ["ten"], effect: [testLimit(10, hour)] },
]);

let clock: FakeClock;
let store: FaultyStore;
let counters: DecisionCounters;
let pressure: Pressure;
let decider: Decider;

beforeEach(() => {
  clock = new FakeClock();
  store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  counters = new DecisionCounters();
  pressure = new Pressure({
    loopDelayMsMax: 100,
    requestsInFlightMax: 100,
    requestsInFlightBytesMax: 1_000_000,
    asksStoreWhenLate: false,
  });
  decider = createDecider();
});

function createDecider(switches = noSwitches): Decider {
  const policies = { current: () => policy };
  return createTestDecider({ policies, store, clock, counters, pressure, switches });
}

function on(key: string, fields: Partial<DescriptorQuery> = {}): DescriptorQuery {
  return { entries: [{ key, value: "a" }], hits: 1, isRefund: false, ...fields };
}

async function ask(...descriptors: readonly DescriptorQuery[]): Promise<Verdict> {
  const promise = decideQuery(decider, { domain: "shop", descriptors }, Number.POSITIVE_INFINITY);
  clock.runTurns();
  await settlePromises();
  return promise;
}

/** What a rule has counted: descriptors, and their hits. */
function countsOf(rule: 0 | 1) {
  const { ok, over, hits } = counters.forPolicy(policy)[rule] ?? {};
  return { ok, over, total: hits?.total, within: hits?.within, overHits: hits?.over };
}

describe("Decider, from memory", () => {
  it("leaves out a limit that was exhausted since, and counts nothing of it", async () => {
    await ask(on("one"), on("ten"));
    expect((await ask(on("one"), on("ten"))).statuses[1]).toMatchObject({ limitRemaining: 9 });
    for (let i = 0; i < 9; i += 1) await ask(on("ten"));
    const before = countsOf(1);
    const asked = store.batches.length;
    const { isDenied, statuses } = await ask(on("one"), on("ten"));
    expect(isDenied).toBe(true);
    expect(statuses).toEqual([expect.objectContaining({ isOver: true }), unknownVerdict]);
    expect(store.batches).toHaveLength(asked);
    expect(countsOf(1)).toEqual(before);
    expect(countsOf(0)).toMatchObject({ ok: 1, over: 2, total: 3, overHits: 2 });
  });

  it("asks about a limit that it knows nothing of, and tells its longer wait", async () => {
    await ask(on("one"));
    await ask(on("one"));
    for (let i = 0; i < 10; i += 1) await ask(on("ten"));
    for (const isAsked of [true, false]) {
      const asked = store.batches.length;
      const { statuses } = await ask(on("one"), on("ten"));
      expect(statuses).toMatchObject([
        { isOver: true, durationUntilResetUs: 60_000_000 },
        { isOver: true, durationUntilResetUs: 360_000_000 },
      ]);
      expect(store.batches).toHaveLength(asked + (isAsked ? 1 : 0));
    }
    expect(countsOf(1)).toMatchObject({ ok: 10, over: 2 });
  });

  it("leaves out what it knows nothing of while the store is not to be asked", async () => {
    await ask(on("one"));
    await ask(on("one"));
    for (let i = 0; i <= 100; i += 1) pressure.begin(1);
    const { isDenied, statuses } = await ask(on("one"), on("ten"));
    expect(isDenied).toBe(true);
    expect(statuses).toEqual([expect.objectContaining({ isOver: true }), unknownVerdict]);
    // What it knows nothing against goes to the failure mode.
    expect((await ask(on("ten"))).isDenied).toBe(false);
    expect(counters.fallbackByMode.local.get("OVERLOADED")).toBe(1);
  });

  it("does not refuse 9 a day in windows by what it remembers of 2 a day", async () => {
    const defaults = { ...noSwitches.defaults, algorithm: "fixed_window" } as const;
    decider = createDecider({ ...noSwitches, defaults });
    const carrying = (hits: number): DescriptorQuery =>
      on("carried", { override: { hits, unit: "day", unitMultiplier: 1 } });
    for (const isDenied of [false, false, true, true]) {
      expect((await ask(carrying(2))).isDenied).toBe(isDenied);
    }
    expect((await ask(carrying(9))).statuses).toMatchObject([{ isOver: false, limitRemaining: 6 }]);
    expect((await ask(carrying(2))).isDenied).toBe(true);
    expect((await ask(carrying(0))).isDenied).toBe(true);
    expect((await ask(carrying(9))).statuses).toMatchObject([{ isOver: false, limitRemaining: 5 }]);
  });

  it("forgets that a key was over when hits are given back", async () => {
    await ask(on("one"));
    expect((await ask(on("one"))).isDenied).toBe(true);
    await ask(on("one", { isRefund: true }));
    expect((await ask(on("one"))).isDenied).toBe(false);
    expect((await ask(on("one"))).isDenied).toBe(true);
  });

  it("forgets that a key was over when it is reset", async () => {
    const inspector = new KeyInspector({
      policies: { current: () => policy },
      overrides: { current: () => noOverrides },
      explainer: new Explainer({ switches: noSwitches, digest: sha256 }),
      store,
      clock,
      areLimitsCarried: () => false,
      onReset: () => decider.forgetRefusals(),
    });
    // By a query that is kept, as by one that is not.
    const prepared = decider.prepare({ domain: "shop", descriptors: [on("one")] });
    const denied = async (): Promise<boolean> => {
      const verdict = decider.decidePrepared(prepared, 1, Number.POSITIVE_INFINITY);
      clock.runTurns();
      await settlePromises();
      return (await verdict).isDenied;
    };
    expect([await denied(), await denied(), await denied()]).toEqual([false, true, true]);
    await inspector.reset({ domain: "shop", entries: [{ key: "one", value: "a" }] });
    expect([await denied(), await denied()]).toEqual([false, true]);
  });

  it("does not remember a refusal that was under way when its key was reset", async () => {
    await ask(on("one"));
    const query = { domain: "shop", descriptors: [on("one")] };
    const late = decideQuery(decider, query, Number.POSITIVE_INFINITY);
    clock.runTurns();
    // The store has decided, and the answer is on its way.
    decider.forgetRefusals();
    await settlePromises();
    expect((await late).isDenied).toBe(true);
    const asked = store.batches.length;
    await ask(on("one"));
    expect(store.batches).toHaveLength(asked + 1);
  });
});
