import { beforeEach, describe, expect, it } from "vitest";
import { DecisionSampler } from "../../../../src/decide/inspect/decision-sampler.js";
import {
  type TailFilter,
  type TailFollower,
  tailCharsMax,
  tailFollowersMax,
  tailLooksPerSecondMax,
  tailRingCharsMax,
  tailRingMax,
} from "../../../../src/decide/inspect/decision-tail.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import type { RateLimitQuery } from "../../../../src/decide/rate-limit/query.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const policy = testPolicy([
  { path: ["user"], effect: [testLimit(10, { name: "pace" })] },
  { path: ["free"], effect: { kind: "unlimited" } },
]);

const all = { domains: undefined, ruleLabel: undefined };
const everything: TailFilter = {
  ...all,
  isDeniedOnly: false,
  having: [],
  sampleRatio: 1,
  perSecondMax: 1_000_000,
};

let clock: FakeClock;
let store: FaultyStore;
let seen: DecisionSampler;
let decider: Decider;

beforeEach(() => {
  clock = new FakeClock();
  store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  seen = new DecisionSampler({ clock, random: new FakeRandom() });
  decider = createTestDecider({
    policies: { current: () => policy },
    store,
    clock,
    counters: new DecisionCounters(),
    observers: [seen],
  });
});

/** `user=ann`, or several descriptors. */
async function ask(...texts: readonly string[]): Promise<boolean> {
  const descriptors = texts.map((text) => {
    const [key = "", value = ""] = text.split("=");
    return { entries: [{ key, value }], hits: 1, isRefund: false };
  });
  const query: RateLimitQuery = { domain: "shop", descriptors };
  const prepared = decider.prepare(query);
  const given = decider.wantsQuery(prepared) ? query : undefined;
  const answered = new Promise<boolean>((resolve, reject) => {
    decider.ask(prepared, {
      hits: 1,
      deadlineMs: Number.POSITIVE_INFINITY,
      query: given,
      decided: ({ isDenied }) => resolve(isDenied),
      failed: reject,
    });
  });
  clock.runTurns();
  await settlePromises();
  return answered;
}

function follow(fields: Partial<TailFilter> = {}): TailFollower {
  const follower = seen.follow({ ...everything, ...fields });
  if (follower === undefined) throw new Error("there is room for it");
  return follower;
}

/** Values and drops since the last time. */
function taken(follower: TailFollower): readonly [readonly string[], number] {
  const { samples, droppedCount } = follower.take();
  return [samples.map(({ entries }) => entries[0]?.value ?? ""), droppedCount];
}

describe("DecisionSampler", () => {
  it("counts keys by calls and denials, and knows which are near their limit", async () => {
    for (let i = 0; i < 9; i += 1) await ask("user=ann");
    for (let i = 0; i < 12; i += 1) await ask("user=bob");
    await ask("user=cat");
    await ask("free=dan", "other=eve");
    const hits = seen.top(all, { order: "hits", countMax: 10 });
    expect(hits.keys.map(({ entries, count }) => [entries[0]?.value, count])).toEqual([
      ["bob", 12],
      ["ann", 9],
      ["cat", 1],
      ["dan", 1],
    ]);
    expect(hits.sinceEpochMs).toBe(clock.epochUs() / 1_000);
    const denials = seen.top(all, { order: "denials", countMax: 10 });
    expect(denials.keys).toMatchObject([{ ruleLabel: "user", count: 2, errorMax: 0 }]);
    const near = seen.near(all, { usedRatioMin: 0.8, countMax: 10 });
    expect(near).toMatchObject([
      { entries: [{ key: "user", value: "bob" }], usedRatio: 1, isOver: true, limitName: "pace" },
      { entries: [{ key: "user", value: "ann" }], isOver: false, seenEpochMs: hits.sinceEpochMs },
    ]);
    expect(near[1]?.usedRatio).toBeCloseTo(0.9);
  });

  it("leaves out keys that are too long, and says how many", async () => {
    const follower = follow();
    await ask(`user=${"x".repeat(tailCharsMax)}`);
    expect(seen.top(all, { order: "hits", countMax: 10 }).keys).toEqual([]);
    expect(taken(follower)).toEqual([[], 0]);
    expect(seen.tooLongCount).toBe(2);
  });

  it("shows decisions to those who follow, and who decided them", async () => {
    const follower = follow();
    await ask("user=ann", "other=eve");
    for (let i = 0; i < 10; i += 1) await ask("user=ann");
    follower.take();
    await ask("user=ann");
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    await ask("user=bob");
    const { samples } = follower.take();
    expect(samples.map(({ decidedBy, isDenied }) => [decidedBy, isDenied])).toEqual([
      ["memory", true],
      ["local", false],
    ]);
    store.fault = { kind: "none" };
    await ask("free=dan", "other=eve");
    expect(follower.take().samples).toMatchObject([
      { domain: "shop", ruleLabel: "free", decidedBy: "policy", hits: 1 },
      { entries: [{ key: "other", value: "eve" }], ruleLabel: undefined, isDenied: false },
    ]);
    follower.stop();
    await ask("user=ann");
    expect(taken(follower)).toEqual([[], 0]);
  });

  it("shows only what is asked for", async () => {
    const denied = follow({ isDeniedOnly: true });
    const elsewhere = follow({ domains: ["api"] });
    const free = follow({ ruleLabel: "free" });
    const hers = follow({ having: [{ key: "user", value: "ann" }] });
    for (let i = 0; i < 11; i += 1) await ask("user=bob");
    await ask("user=ann", "free=dan");
    expect(taken(denied)).toEqual([["bob"], 0]);
    expect(taken(elsewhere)).toEqual([[], 0]);
    expect(taken(free)).toEqual([["dan"], 0]);
    expect(taken(hers)).toEqual([["ann"], 0]);
  });

  it("shows a part of the decisions, and so many a second", async () => {
    const part = follow({ sampleRatio: 0.25 });
    const few = follow({ perSecondMax: 3 });
    for (let i = 0; i < 200; i += 1) await ask(`user=u${i}`);
    const { length } = part.take().samples;
    expect(length).toBeGreaterThan(30);
    expect(length).toBeLessThan(75);
    expect(taken(few)).toEqual([["u0", "u1", "u2"], 197]);
    clock.advance(1_000);
    await ask("user=ann");
    expect(taken(few)).toEqual([["ann"], 0]);
  });
});

describe("DecisionSampler.follow()", () => {
  it("keeps no more text for a follower than it may, whatever it leaves untaken", async () => {
    const follower = follow();
    const value = "x".repeat(tailCharsMax - "free".length);
    const most = tailRingCharsMax / tailCharsMax;
    for (let i = 0; i < most + 3; i += 1) await ask(`free=${value}`);
    expect(taken(follower)).toEqual([Array.from({ length: most }, () => value), 3]);
    await ask(`free=${value}`);
    expect(taken(follower)[0]).toHaveLength(1);
  });

  it("drops what nobody takes in time", async () => {
    const follower = follow();
    for (let i = 0; i < tailRingMax + 5; i += 1) {
      clock.advance(1);
      await ask(`user=u${i}`);
    }
    const { samples, droppedCount } = follower.take();
    expect(samples).toHaveLength(tailRingMax);
    expect(samples[0]?.entries[0]?.value).toBe("u0");
    expect(droppedCount).toBe(5);
  });

  it("looks at so many calls a second, whoever follows", async () => {
    const follower = follow();
    const looksInPart = tailLooksPerSecondMax / 10;
    for (let i = 0; i < looksInPart + 7; i += 1) await ask(`user=u${i}`);
    expect(taken(follower)[1]).toBe(7);
    clock.advance(100);
    await ask("user=ann");
    expect(taken(follower)).toEqual([["ann"], 0]);
  });

  it("lets so many follow, and leaves nothing behind them", () => {
    const followers = Array.from({ length: tailFollowersMax }, () => follow());
    expect(seen.follow(everything)).toBeUndefined();
    for (const follower of followers) follower.stop();
    expect(seen.follow(everything)).toBeDefined();
    expect(clock.timerCount).toBe(1);
  });
});
