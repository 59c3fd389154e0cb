import { beforeEach, describe, expect, it } from "vitest";
import type { GlobalDemand, RegionalLimits } from "../../../../src/core/limits/lending.js";
import type { Limit } from "../../../../src/core/limits/limit.js";
import { OverrideTable } from "../../../../src/core/limits/override-table.js";
import type { Verdict } from "../../../../src/core/limits/verdict.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import { QueryShapes } from "../../../../src/decide/rate-limit/query-shapes.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { digestOf } from "../../../support/charges.js";
import { createTestDecider, decideQuery } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const hour = { unit: "hour", periodUs: 3_600_000_000 } as const;
const everywhere: Partial<Limit> = { ...hour, spread: "global" };
const windowed: Partial<Limit> = { ...everywhere, algorithm: { kind: "fixed_window" } };
const policy = testPolicy([
  { path: ["global"], effect: [testLimit(11, everywhere)] },
  { path: ["region"], effect: [testLimit(11, hour)] },
  { path: ["window"], effect: [testLimit(11, windowed)] },
]);

let clock: FakeClock;
let store: FaultyStore;
let counters: DecisionCounters;
let noted: GlobalDemand[];
let overrides: OverrideTable;
let decider: Decider;

beforeEach(() => {
  clock = new FakeClock();
  store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  counters = new DecisionCounters();
  noted = [];
  overrides = new OverrideTable([], 1, 0);
  const share = { index: 0, count: 3 };
  const regions = { share, denialMsMax: 100, note: (one: GlobalDemand) => noted.push(one) };
  decider = createDecider(regions);
});

function createDecider(regions: RegionalLimits | undefined): Decider {
  const policies = { current: () => policy };
  const table = { current: () => overrides };
  return createTestDecider({ policies, overrides: table, store, clock, counters, regions });
}

function queryOf(...keys: readonly string[]) {
  const descriptors = keys.map((key) => ({
    entries: [{ key, value: "a" }],
    hits: 1,
    isRefund: false,
  }));
  return { domain: "shop", descriptors };
}

async function ask(...keys: readonly string[]): Promise<Verdict> {
  const promise = decideQuery(decider, queryOf(...keys), Number.POSITIVE_INFINITY);
  clock.runTurns();
  await settlePromises();
  return promise;
}

async function askedUntilDenied(key: string): Promise<number> {
  for (let count = 0; count < 100; count += 1) if ((await ask(key)).isDenied) return count;
  throw new Error("it is never denied");
}

describe("Decider, in one of several regions", () => {
  it.each([
    { key: "global", admitted: 4 },
    { key: "region", admitted: 11 },
    { key: "window", admitted: 4 },
  ])("admits $admitted hits at once of the limit $key", async ({ key, admitted }) => {
    expect(await askedUntilDenied(key)).toBe(admitted);
  });

  it("admits all of a global limit where there are no regions", async () => {
    decider = createDecider(undefined);
    expect(await askedUntilDenied("global")).toBe(11);
    expect(noted).toEqual([]);
  });

  it("divides an override, and reports the whole limit", async () => {
    const told = { id: "one", domain: "shop", reason: "", author: "", createdEpochMs: 0 };
    const entries = [{ key: "global", value: "a" }];
    const effect = { kind: "amount", hits: 60, burst: 24 } as const;
    overrides = new OverrideTable([{ ...told, entries, isPrefix: false, effect }], 1, 0);
    const { statuses } = await ask("global");
    expect(statuses[0]).toMatchObject({ limitRemaining: 7, currentLimit: { hits: 60, burst: 24 } });
    expect(noted.at(-1)?.limit).toMatchObject({ hits: 60, burst: 24 });
  });

  it("shows decisions of global limits to the lender, and no others", async () => {
    await ask("region");
    expect(noted).toEqual([]);
    await askedUntilDenied("global");
    expect(noted.map(({ result }) => result.isOver)).toEqual([false, false, false, false, true]);
    expect(noted[0]).toMatchObject({ limit: { burst: 11 }, charge: { burst: 4 } });
    await ask("region", "global");
    expect(noted).toHaveLength(6);
    expect(noted.at(-1)).toMatchObject({ result: { isOver: true } });
  });

  it("denies from memory for one round of lending, and shows that too", async () => {
    await askedUntilDenied("global");
    const batchCount = store.batches.length;
    clock.advance(99);
    expect((await ask("global")).isDenied).toBe(true);
    expect(store.batches).toHaveLength(batchCount);
    expect(noted.at(-1)).toMatchObject({ result: { isOver: true } });
    clock.advance(1);
    expect((await ask("global")).isDenied).toBe(true);
    expect(store.batches).toHaveLength(batchCount + 1);
  });

  it("shows nothing of what failure modes decide, and divides their part again", async () => {
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    expect(await askedUntilDenied("global")).toBe(4);
    expect(noted).toEqual([]);
  });

  it("counts hits near the limit by the region's part", async () => {
    for (let i = 0; i < 4; i += 1) await ask("global");
    // Above 0.8 of 4, rounded down.
    expect(counters.forPolicy(policy)[0]?.hits).toMatchObject({ within: 4, near: 1 });
  });

  it("makes one shape of the queries of a global limit", () => {
    const shapes = new QueryShapes();
    const prepared = decider.prepare(queryOf("global"));
    const shape = shapes.shapeOf(prepared);
    expect(shape).toBeDefined();
    if (shape === undefined) return;
    const [charge] = prepared.charges;
    const rehydrated = decider.rehydrate?.(
      shape,
      charge === undefined ? [] : [digestOf(charge.key)],
    );
    const queries = rehydrated === undefined ? [] : [rehydrated];
    for (const query of queries) {
      expect(query.isGlobal).toBe(true);
      expect(query.charges[0]).toMatchObject({ burst: 4, periodUs: 3 * hour.periodUs });
    }
  });
});
