import { randomBytes } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { Override } from "../../../../src/core/limits/override.js";
import { noOverrides, OverrideTable } from "../../../../src/core/limits/override-table.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import { RequestCache } from "../../../../src/rpc/rls/rls-request-cache.js";
import type { LimitStore } from "../../../../src/store/limit-store.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const policy = testPolicy([
  { path: ["user"], effect: [testLimit(2), testLimit(100, { name: "daily", unit: "day" })] },
]);

let clock: FakeClock;
let store: FaultyStore;
let decider: Decider;
let table: OverrideTable;

beforeEach(() => {
  clock = new FakeClock();
  store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  table = noOverrides;
  decider = createDecider(store);
});

function createDecider(own: LimitStore): Decider {
  return createTestDecider({
    policies: { current: () => policy },
    overrides: { current: () => table },
    store: own,
    clock,
    counters: new DecisionCounters(),
  });
}

function use(...overrides: readonly Partial<Override>[]): void {
  const usual: Override = {
    id: "one",
    domain: "shop",
    entries: [{ key: "user", value: "ann" }],
    isPrefix: false,
    effect: { kind: "multiplier", by: 2 },
    reason: "a test",
    author: "op",
    createdEpochMs: 0,
  };
  const all = overrides.map((fields) => ({ ...usual, ...fields }));
  table = new OverrideTable(all, table.version + 1, 0);
}

function queryOf(user: string) {
  const entries = [{ key: "user", value: user }];
  return { domain: "shop", descriptors: [{ entries, hits: 1, isRefund: false }] };
}

/** How many of so many calls at once pass. */
async function passing(user: string, count: number): Promise<number> {
  let passedCount = 0;
  for (let i = 0; i < count; i += 1) {
    const prepared = decider.prepare(queryOf(user));
    const asked = decider.decidePrepared(prepared, 1, Number.POSITIVE_INFINITY);
    clock.runTurns();
    await settlePromises();
    if (!(await asked).isDenied) passedCount += 1;
  }
  return passedCount;
}

describe("Decider with overrides", () => {
  it("gives the key another limit at once, and no other key", async () => {
    expect(await passing("ann", 3)).toBe(2);
    use({});
    // Twice as much, and what was used stays used.
    expect(await passing("ann", 3)).toBe(2);
    expect(await passing("bob", 3)).toBe(2);
    use();
    expect(await passing("ann", 1)).toBe(0);
  });

  it("forgets refusals of before, also of a key that nobody has touched", async () => {
    await passing("ann", 3);
    const before = store.batches.length;
    expect(await passing("ann", 1)).toBe(0);
    expect(store.batches).toHaveLength(before);
    use({ effect: { kind: "amount", hits: 10, burst: 10 } });
    expect(await passing("ann", 1)).toBe(1);
  });

  it("freezes a key, and says in what time to ask again", async () => {
    use({ effect: { kind: "frozen" } });
    const prepared = decider.prepare(queryOf("ann"));
    const asked = decider.decidePrepared(prepared, 1, Number.POSITIVE_INFINITY);
    clock.runTurns();
    await settlePromises();
    const { isDenied, statuses } = await asked;
    expect(isDenied).toBe(true);
    expect(statuses[0]).toMatchObject({ isOver: true, currentLimit: { hits: 0 } });
    use();
    expect(await passing("ann", 3)).toBe(2);
  });

  it("changes the named limit alone", async () => {
    use({ limitName: "daily", effect: { kind: "amount", hits: 1, burst: 1 } });
    expect(await passing("ann", 3)).toBe(1);
    const { asks } = decider.prepare(queryOf("ann"));
    expect(asks.map(({ limit }) => limit.hits)).toEqual([2, 1]);
  });

  it("tells what was prepared under others that it is stale", () => {
    const prepared = decider.prepare(queryOf("bob"));
    expect(decider.isCurrent(prepared)).toBe(true);
    use({});
    expect(decider.isCurrent(prepared)).toBe(false);
  });

  it("makes no other request of a known one that has an override", async () => {
    // Where the store knows short keys, requests are known by shapes.
    decider = createDecider(new MemoryLimitStore({ clock }));
    expect(decider.rehydrate).toBeDefined();
    const known = new RequestCache(decider, new FakeRandom(1), { recentMax: 1 });
    const remember = (user: string) => {
      const bytes = Buffer.concat([Buffer.from(user), randomBytes(4)]);
      const identity = { bytes, end: bytes.length, isCut: false };
      known.add(known.digestOf(identity), decider.prepare(queryOf(user)), true);
      return () => known.find(known.digestOf(identity));
    };
    use({}, { id: "two", entries: [{ key: "user", value: "bob" }], effect: { kind: "frozen" } });
    const [ann, bob, cid] = [remember("ann"), remember("bob"), remember("cid")];
    expect([ann, bob, cid].map((find) => find()?.asks[0]?.limit.hits)).toEqual([4, 0, 2]);
    use();
    expect(ann()).toBeUndefined();
  });
});
