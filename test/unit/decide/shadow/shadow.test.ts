import { beforeEach, describe, expect, it } from "vitest";
import { sha256 } from "../../../../src/app/base/sha256.js";
import type { Limit } from "../../../../src/core/limits/limit.js";
import { noOverrides, OverrideTable } from "../../../../src/core/limits/override-table.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import {
  type ShadowBounds,
  ShadowRun,
  shadowCharsMax,
  shadowObserver,
} from "../../../../src/decide/shadow/shadow.js";
import { noDifference, type ShadowCounts } from "../../../../src/decide/shadow/shadow-counts.js";
import type { Policy } from "../../../../src/policy/policy.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { noSwitches } from "../../../support/switches.js";

const live = testPolicy([{ path: ["user"], effect: [testLimit(3)] }]);
const stricter = testPolicy([{ path: ["user"], effect: [testLimit(1)] }], "v2");

let clock: FakeClock;
let store: FaultyStore;
let shadowStore: FaultyStore;
let decider: Decider;
let run: ShadowRun | undefined;
let table: OverrideTable;
let isBusy: boolean;
let policy: Policy;

beforeEach(() => {
  clock = new FakeClock();
  store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  shadowStore = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  run = undefined;
  table = noOverrides;
  isBusy = false;
  policy = live;
  decider = createTestDecider({
    policies: { current: () => policy },
    overrides: { current: () => table },
    store,
    clock,
    counters: new DecisionCounters(),
    observers: [shadowObserver({ current: () => run })],
  });
});

function begin(candidate = stricter, bounds: Partial<ShadowBounds> = {}): ShadowRun {
  run = new ShadowRun({
    policy: candidate,
    overrides: { current: () => table },
    store: shadowStore,
    liveNameOf: (key) => key,
    sinceEpochMs: clock.epochUs() / 1_000,
    clock,
    storeBudgetMs: 50,
    newKeysPerSecondMax: 1_000_000,
    switches: noSwitches,
    digest: sha256,
    isBusy: () => isBusy,
    bounds,
  });
  return run;
}

function queryOf(...users: readonly string[]) {
  const descriptors = users.map((value) => {
    return { entries: [{ key: "user", value }], hits: 1, isRefund: false };
  });
  return { domain: "shop", descriptors };
}

/** Asks as a server does; answers whether it was denied. */
function ask(...users: readonly string[]): Promise<boolean> {
  return askFor(1, ...users);
}

async function askFor(hits: number, ...users: readonly string[]): Promise<boolean> {
  const query = queryOf(...users);
  const prepared = decider.prepare(query);
  const asked = new Promise<boolean>((resolve, reject) => {
    decider.ask(prepared, {
      hits,
      deadlineMs: Number.POSITIVE_INFINITY,
      query: decider.wantsQuery(prepared) ? query : undefined,
      decided: ({ isDenied }) => resolve(isDenied),
      failed: reject,
    });
  });
  clock.runTurns();
  await settlePromises();
  clock.runTurns();
  await settlePromises();
  return asked;
}

async function askTimes(count: number, user = "ann"): Promise<number> {
  let deniedCount = 0;
  for (let i = 0; i < count; i += 1) if (await ask(user)) deniedCount += 1;
  return deniedCount;
}

function sums(counts: ShadowCounts | undefined) {
  if (counts === undefined) return undefined;
  const { comparedCount: all, newlyDeniedCount: denied, newlyAllowedCount: allowed } = counts;
  return { all, denied, allowed, unseen: counts.unseenCount };
}

const user = { domain: "shop", label: "user" } as const;
const nothingDecided = {
  isDenied: false,
  charges: [],
  results: [],
  nowUs: 0,
  isFromMemory: false,
} as const;

describe("buckets of a shadow", () => {
  /** What the rule counts after so many calls, where two came before the run. */
  async function countsAfter(limits: readonly Limit[], times: number) {
    await askTimes(2);
    const shadow = begin(testPolicy([{ path: ["user"], effect: limits }], "v2"));
    await askTimes(times);
    const [rule] = shadow.take()?.rules ?? [];
    return { ...noDifference, ...rule };
  }

  it("begin with what the active ones have in use: the same limit differs in nothing", async () => {
    const found = await countsAfter([testLimit(3)], 3);
    expect(found).toEqual({ ...noDifference, ...user, sameCount: 3, beganLiveCount: 1 });
  });

  it("begin so of a limit that is lowered, whose use stays used", async () => {
    const found = await countsAfter([testLimit(2)], 2);
    expect(found).toMatchObject({ newlyDeniedCount: 1, sameCount: 1, beganLiveCount: 1 });
  });

  it("begin empty where the limit is another one", async () => {
    const hour = { unit: "hour", periodUs: 3_600_000_000 } as const;
    const found = await countsAfter([testLimit(3, hour)], 3);
    expect(found).toMatchObject({ newlyAllowedCount: 2, beganLiveCount: 0, beganEmptyCount: 1 });
  });

  it("begin with the use of a caller who is refused, and once", async () => {
    await askTimes(4);
    const shadow = begin(testPolicy([{ path: ["user"], effect: [testLimit(3)] }], "v2"));
    expect(await askTimes(2)).toBe(2);
    expect(sums(shadow.take())).toMatchObject({ all: 2, allowed: 0 });
    clock.advance(20_000);
    expect(await askTimes(2)).toBe(1);
    expect(sums(shadow.take())).toMatchObject({ all: 2, denied: 0, allowed: 0 });
  });

  it("begin with what a window in force has counted", async () => {
    const limit = testLimit(3, { algorithm: { kind: "fixed_window" } });
    policy = testPolicy([{ path: ["user"], effect: [limit] }]);
    const found = await countsAfter([limit], 2);
    expect(found).toMatchObject({ newlyAllowedCount: 0, sameCount: 2, beganLiveCount: 1 });
  });

  it("take nothing from before the run, when that has drained", async () => {
    await askTimes(2);
    const shadow = begin(testPolicy([{ path: ["user"], effect: [testLimit(2)] }], "v2"));
    clock.advance(61_000);
    await askTimes(1);
    expect(shadow.take()?.rules[0]).toMatchObject({ beganLiveCount: 0, beganEmptyCount: 0 });
  });
});

describe("ShadowRun", () => {
  it.each([
    { what: "limits nothing of", rules: [] },
    { what: "does not limit", rules: [{ path: ["user"], effect: { kind: "unlimited" } }] },
  ] as const)("counts what a candidate lets pass that $what a call", async ({ rules }) => {
    const shadow = begin(testPolicy(rules, "v2"));
    expect(await askTimes(5)).toBe(2);
    expect(sums(shadow.take())).toEqual({ all: 5, denied: 0, allowed: 2, unseen: 0 });
  });

  it("leaves out calls that are too long to wait", async () => {
    const shadow = begin();
    await ask("x".repeat(shadowCharsMax / 2), "y".repeat(shadowCharsMax / 2));
    await ask("x".repeat(shadowCharsMax - "user".length));
    expect(shadow.take()).toMatchObject({ comparedCount: 1, unseenCount: 1 });
  });

  it("charges costs that are told after the response as the service does", async () => {
    const fields = { settlesOncePeeked: true } as const;
    const shadow = begin(testPolicy([{ path: ["user"], effect: [testLimit(2)], fields }], "v2"));
    expect(await askFor(0, "ann")).toBe(false);
    expect(await askFor(3, "ann")).toBe(false);
    expect(sums(shadow.take())).toMatchObject({ all: 2, denied: 1 });
    // The cost was above the limit, and is a debt all the same.
    await askFor(0, "ann");
    expect(sums(shadow.take())).toMatchObject({ all: 1, denied: 1 });
  });

  it("counts what a stricter policy would refuse, and changes no answer", async () => {
    const shadow = begin();
    expect(await askTimes(4)).toBe(1);
    expect(shadow.take()).toEqual({
      comparedCount: 4,
      newlyDeniedCount: 2,
      newlyAllowedCount: 0,
      unseenCount: 0,
      rules: [{ ...noDifference, ...user, newlyDeniedCount: 2, sameCount: 2, beganLiveCount: 1 }],
    });
    expect(shadow.take()).toBeUndefined();
  });

  it("counts what a looser policy would let pass", async () => {
    const shadow = begin(testPolicy([{ path: ["user"], effect: [testLimit(5)] }], "v2"));
    expect(await askTimes(6)).toBe(3);
    expect(sums(shadow.take())).toEqual({ all: 6, denied: 0, allowed: 2, unseen: 0 });
  });

  it("names the rules that would refuse, and not those that only were met", async () => {
    const shadow = begin(
      testPolicy(
        [
          { path: ["user=ann"], effect: [testLimit(1)] },
          { path: ["user"], effect: [testLimit(100)] },
        ],
        "v2",
      ),
    );
    await ask("ann", "bob");
    await ask("ann", "bob");
    const rules = shadow.take()?.rules.map(({ label, newlyDeniedCount, sameCount }) => {
      return [label, newlyDeniedCount, sameCount];
    });
    // Both policies have a rule that is called `user`: a call counts once for it.
    expect(rules).toEqual([
      ["user_ann", 1, 1],
      ["user", 0, 2],
    ]);
  });

  it("counts overrides on both sides, and leaves their keys apart", async () => {
    const shadow = begin();
    const entries = [{ key: "user", value: "ann" }];
    const effect = { kind: "multiplier", by: 2 } as const;
    const facts = { reason: "", author: "", createdEpochMs: 0 };
    const override = { id: "o", domain: "shop", entries, isPrefix: false, effect, ...facts };
    table = new OverrideTable([override], 1, 0);
    expect(await askTimes(7)).toBe(1);
    expect(sums(shadow.take())).toEqual({ all: 7, denied: 4, allowed: 0, unseen: 0 });
  });

  it("wants no queries while nothing runs", async () => {
    const prepared = decider.prepare(queryOf("ann"));
    expect(decider.wantsQuery(prepared)).toBe(false);
    begin();
    expect(decider.wantsQuery(prepared)).toBe(true);
  });

  it("answers as fast while its own store stands still, and says what was left out", async () => {
    const shadow = begin(stricter, { inFlightMax: 2 });
    shadowStore.fault = { kind: "hang" };
    expect(await askTimes(4)).toBe(1);
    // Two wait for its store; those beyond the bound are left out at once.
    expect(sums(shadow.take())).toEqual({ all: 0, denied: 0, allowed: 0, unseen: 2 });
    clock.advance(100);
    await settlePromises();
    expect(sums(shadow.take())).toEqual({ all: 0, denied: 0, allowed: 0, unseen: 2 });
  });

  it("leaves out what a busy process has no time for", async () => {
    const shadow = begin();
    isBusy = true;
    await askTimes(2);
    expect(sums(shadow.take())).toEqual({ all: 0, denied: 0, allowed: 0, unseen: 2 });
  });

  it("takes a sample of what comes too fast, by what is asked", async () => {
    const shadow = begin(stricter, { perSecondMax: 20 });
    for (let i = 0; i < 100; i += 1) await ask(`user${i}`);
    expect(sums(shadow.take())).toMatchObject({ all: 20, unseen: 80 });
    clock.advance(1_000);
    await ask("user0");
    expect(shadow.divisor).toBe(8);
    shadow.take();
    clock.advance(1);
    // Every caller is seen whole, or not at all.
    const seen = new Set<number>();
    for (let i = 0; i < 40; i += 1) {
      await ask(`user${i}`);
      const first = shadow.take()?.comparedCount;
      await ask(`user${i}`);
      expect(shadow.take()?.comparedCount).toBe(first);
      if (first === 1) seen.add(i);
    }
    expect(seen.size).toBeGreaterThan(0);
    expect(seen.size).toBeLessThan(20);
  });

  it("charges what all share for those that are left out", async () => {
    const shared = [
      { path: ["all=yes"], effect: [testLimit(40)] },
      { path: ["user"], effect: [testLimit(1_000)] },
    ];
    const shadow = begin(testPolicy(shared, "v2"), { perSecondMax: 20 });
    const askBoth = async (i: number): Promise<void> => {
      const entries = [{ key: "all", value: "yes" }];
      const own = queryOf(`user${i}`);
      const query = {
        domain: "shop",
        descriptors: [{ entries, hits: 1, isRefund: false }, ...own.descriptors],
      };
      const prepared = decider.prepare(query);
      decider.ask(prepared, {
        hits: 1,
        deadlineMs: Number.POSITIVE_INFINITY,
        query,
        decided: () => {},
        failed: () => {},
      });
      clock.runTurns();
      await settlePromises();
      clock.runTurns();
      await settlePromises();
    };
    for (let i = 0; i < 80; i += 1) await askBoth(i);
    clock.advance(60_000);
    await askBoth(0);
    shadow.take();
    expect(shadow.divisor).toBe(4);
    for (let i = 1; i < 160; i += 1) await askBoth(i);
    const counts = shadow.take();
    // A fourth is seen: about 40 calls, of which 10 use up the 40 hits of all.
    expect((counts?.comparedCount ?? 0) - (counts?.newlyDeniedCount ?? 0)).toBeLessThanOrEqual(11);
    expect(counts?.newlyDeniedCount).toBeGreaterThan(5);
  });

  it("keeps no more calls waiting than its bound", async () => {
    const shadow = begin(stricter, { queueMax: 3 });
    for (let i = 0; i < 5; i += 1) {
      const query = queryOf(`user${i}`);
      const prepared = decider.prepare(query);
      const verdict = { isDenied: false, statuses: [{ isOver: false }] };
      const request = { ...nothingDecided, isFallback: true } as const;
      shadow.note({ query, hits: 1, prepared, request, verdict });
    }
    clock.runTurns();
    await settlePromises();
    expect(sums(shadow.take())).toMatchObject({ all: 3, unseen: 2 });
  });

  it("counts nothing after its end", async () => {
    const shadow = begin();
    shadowStore.fault = { kind: "hang" };
    await ask("ann");
    shadow.close();
    clock.advance(100);
    await settlePromises();
    await ask("ann");
    expect(shadow.take()).toBeUndefined();
  });
});
