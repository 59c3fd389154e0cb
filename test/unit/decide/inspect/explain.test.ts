import { beforeEach, describe, expect, it } from "vitest";
import type { RegionShare } from "../../../../src/core/limits/lending.js";
import type { Override } from "../../../../src/core/limits/override.js";
import { noOverrides, OverrideTable } from "../../../../src/core/limits/override-table.js";
import { Explainer } from "../../../../src/decide/inspect/explain.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import type { RateLimitQuery } from "../../../../src/decide/rate-limit/query.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { noSwitches } from "../../../support/switches.js";

const policy = testPolicy([
  { path: ["user"], effect: [testLimit(30, { burst: 3 }), testLimit(9, { name: "slow" })] },
  { path: ["user=ann"], effect: [testLimit(60, { burst: 2 })] },
  { path: ["plan"], effect: { kind: "none" } },
  { path: ["plan", "user"], effect: [testLimit(6, { role: "quota" })] },
  { path: ["team"], effect: [testLimit(6, { role: "quota", name: "team" })] },
  { path: ["path=/a*"], effect: [testLimit(3, { role: "shadow" })] },
  { path: ["tokens"], effect: [testLimit(10, { role: "settle" })] },
  { path: ["window"], effect: [testLimit(4, { algorithm: { kind: "fixed_window" } })] },
  { path: ["free"], effect: { kind: "unlimited" } },
  { path: ["blocked"], effect: [testLimit(0, { burst: 0 })] },
]);

let clock: FakeClock;
let store: MemoryLimitStore;
let decider: Decider;
let overrides = noOverrides;
const explainer = new Explainer({ switches: noSwitches, digest: (text) => text });

beforeEach(() => {
  clock = new FakeClock();
  store = new MemoryLimitStore({ clock });
  overrides = noOverrides;
  decider = createTestDecider({
    policies: { current: () => policy },
    overrides: { current: () => overrides },
    store,
    clock,
    counters: new DecisionCounters(),
  });
});

function queryOf(descriptors: readonly string[], hits = 1, isRefund = false): RateLimitQuery {
  return {
    domain: "shop",
    descriptors: descriptors.map((text) => ({
      entries: text.split(",").map((part) => {
        const [key = "", value = ""] = part.split("=");
        return { key, value };
      }),
      hits,
      isRefund,
    })),
  };
}

function explain(query: RateLimitQuery) {
  const peek = store.peek.bind(store);
  return explainer.explain({ query, policy, overrides, peek, epochUs: clock.epochUs() });
}

async function decide(query: RateLimitQuery) {
  const hits = query.descriptors.map((descriptor) => descriptor.hits);
  const prepared = decider.prepare(query, false);
  const asked = decider.decidePrepared(prepared, hits, Number.POSITIVE_INFINITY);
  clock.runTurns();
  await settlePromises();
  return asked;
}

describe("Explainer", () => {
  it("charges nothing, and counts nothing", async () => {
    const before = await explain(queryOf(["user=bob"]));
    for (let i = 0; i < 10; i += 1) await explain(queryOf(["user=bob"]));
    expect(await explain(queryOf(["user=bob"]))).toEqual(before);
    expect(store.keyCount).toBe(0);
  });

  it("says what each limit holds, and when the answer changes", async () => {
    for (let i = 0; i < 3; i += 1) await decide(queryOf(["user=bob"]));
    clock.advance(500);
    const { isDenied, descriptors } = await explain(queryOf(["user=bob"]));
    expect(isDenied).toBe(true);
    const [first] = descriptors;
    expect(first).toMatchObject({ matched: "user", effect: "limited", isOver: true });
    expect(
      first?.limits.map(({ usedHits, remainingHits, isOver }) => [usedHits, remainingHits, isOver]),
    ).toEqual([
      [2.75, 0, true],
      [expect.closeTo(2.925, 5), 6, false],
    ]);
    // Three quarters of a hit, at one in two seconds.
    expect(first?.changesAfterUs).toBe(1_500_000);
    expect(first?.tried.map(({ rule }) => rule.label).slice(0, 2)).toEqual(["user", "user_ann"]);
  });

  it("names an override, and the limit that it makes", async () => {
    const override: Override = {
      id: "one",
      domain: "shop",
      entries: [{ key: "user", value: "ann" }],
      isPrefix: false,
      effect: { kind: "frozen" },
      reason: "a test",
      author: "op",
      createdEpochMs: 0,
    };
    overrides = new OverrideTable([override], 1, 0);
    const { isDenied, descriptors } = await explain(queryOf(["user=ann"]));
    expect(isDenied).toBe(true);
    expect(descriptors[0]?.limits[0]).toMatchObject({
      override: { id: "one" },
      limit: { hits: 0 },
      retryAfterUs: undefined,
    });
    expect(descriptors[0]?.changesAfterUs).toBeUndefined();
  });

  it("knows which rules settle as the decider learnt it, also of a candidate", async () => {
    const rulesOf = (hits: number) =>
      testPolicy([
        { path: ["model"], effect: [testLimit(hits)], fields: { settlesOncePeeked: true } },
        { path: ["user"], effect: [testLimit(hits)], fields: { settlesOncePeeked: true } },
      ]);
    const active = rulesOf(10);
    const tokens = createTestDecider({
      policies: { current: () => active },
      store,
      clock,
      counters: new DecisionCounters(),
    });
    const peekedRules = tokens.peekedRules.bind(tokens);
    const learned = new Explainer({ switches: noSwitches, digest: (text) => text, peekedRules });
    const rolesBy = async (by: typeof active) => {
      const peek = store.peek.bind(store);
      const query = queryOf(["model=a", "user=ann"]);
      const call = { query, policy: by, overrides, peek, epochUs: clock.epochUs() };
      const { descriptors } = await learned.explain(call);
      return descriptors.flatMap(({ limits }) => limits.map(({ limit }) => limit.role));
    };
    expect(await rolesBy(active)).toEqual(["enforce", "enforce"]);
    const peeking = tokens.prepare(queryOf(["model=a"], 0), false);
    void tokens.decidePrepared(peeking, [0], Number.POSITIVE_INFINITY);
    expect(await rolesBy(active)).toEqual(["settle", "enforce"]);
    expect(await rolesBy(rulesOf(5))).toEqual(["settle", "enforce"]);
  });

  it("tries the rules of the query's domain alone", async () => {
    const shared = testPolicy([
      { path: ["user"], effect: [testLimit(1)], fields: { domain: "cart", label: "other" } },
      { path: ["user"], effect: [testLimit(2)] },
    ]);
    const peek = store.peek.bind(store);
    const query = queryOf(["user=ann"]);
    const call = { query, policy: shared, overrides, peek, epochUs: clock.epochUs() };
    const { descriptors } = await explainer.explain(call);
    expect(descriptors[0]?.matched).toBe("user");
    expect(descriptors[0]?.tried.map(({ rule }) => rule.label)).toEqual(["user"]);
  });

  it("says how many regions divide a global limit, and shows this one's part", async () => {
    const divided = testPolicy([{ path: ["user"], effect: [testLimit(9, { spread: "global" })] }]);
    const peek = store.peek.bind(store);
    const query = queryOf(["user=ann"]);
    const call = { query, policy: divided, overrides, peek, epochUs: clock.epochUs() };
    const explained = async (region?: RegionShare) => {
      const own = new Explainer({ switches: noSwitches, digest: (text) => text, region });
      return (await own.explain(call)).descriptors[0]?.limits[0];
    };
    expect(await explained()).toMatchObject({ regionCount: 1, burst: 9, remainingHits: 9 });
    const part = { regionCount: 3, burst: 3, remainingHits: 3 };
    expect(await explained({ index: 0, count: 3 })).toMatchObject(part);
  });

  it("says of a domain that is not there that it is not", async () => {
    const query = { ...queryOf(["user=ann"]), domain: "none" };
    expect(await explain(query)).toMatchObject({ isDomainKnown: false, isDenied: false });
  });
});
