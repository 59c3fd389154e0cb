import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/app/base/sha256.js";
import { noOverrides } from "../../src/core/limits/override-table.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { ShadowRun, shadowObserver } from "../../src/decide/shadow/shadow.js";
import type { RuleDifference, ShadowCounts } from "../../src/decide/shadow/shadow-counts.js";
import type { LimitStore } from "../../src/store/limit-store.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import { RedisLimitStore } from "../../src/store/redis/redis-limit-store.js";
import { createTestDecider } from "../support/decider.js";
import { testLimit, testPolicy } from "../support/policies.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { shareTestStore } from "../support/redis-store.js";
import { noSwitches } from "../support/switches.js";
import { waitFor } from "../support/wait.js";

const hour = { unit: "hour", periodUs: 3_600_000_000 } as const;

/** A policy whose buckets drain by no whole hit while a test runs. */
function policyOf(hits: number, version: string) {
  const users = { path: ["user"], effect: [testLimit(hits, hour)] };
  const plans = { path: ["plan"], effect: [testLimit(hits, { ...hour, name: version })] };
  return testPolicy([users, plans], version);
}

function describeBeginnings(open: () => { live: LimitStore; shadow: LimitStore }): void {
  it("are those of the live buckets of the same key, and change nothing of them", async () => {
    const { live, shadow } = open();
    const policy = policyOf(4, "v1");
    let run: ShadowRun | undefined;
    const decider = createTestDecider({
      policies: { current: () => policy },
      store: live,
      storeBudgetMs: 5_000,
      clock: realClock,
      counters: new DecisionCounters(),
      observers: [shadowObserver({ current: () => run })],
    });
    const ask = async (key: string): Promise<number | undefined> => {
      const entries = [{ key, value: "ann" }];
      const query = { domain: "shop", descriptors: [{ entries, hits: 1, isRefund: false }] };
      return new Promise((decided, failed) => {
        decider.ask(decider.prepare(query), {
          hits: 1,
          deadlineMs: Number.POSITIVE_INFINITY,
          query,
          decided: ({ statuses }) => decided(statuses[0]?.limitRemaining),
          failed,
        });
      });
    };
    for (const key of ["user", "plan"]) for (let i = 0; i < 2; i += 1) await ask(key);
    run = new ShadowRun({
      policy: policyOf(3, "v2"),
      overrides: { current: () => noOverrides },
      store: shadow,
      liveNameOf: (key) => live.shorten?.(key) ?? key,
      sinceEpochMs: realClock.epochUs() / 1_000,
      clock: realClock,
      storeBudgetMs: 5_000,
      newKeysPerSecondMax: 1_000_000,
      switches: noSwitches,
      digest: sha256,
      isBusy: () => false,
    });
    const taken: ShadowCounts[] = [];
    const sum = (read: (counts: ShadowCounts) => number) =>
      taken.reduce((total, counts) => total + read(counts), 0);
    const sumOf = (label: string, name: Exclude<keyof RuleDifference, "domain" | "label">) =>
      sum(({ rules }) => rules.find((rule) => rule.label === label)?.[name] ?? 0);
    for (const key of ["user", "plan"]) {
      for (const remaining of [1, 0]) expect(await ask(key)).toBe(remaining);
    }
    await waitFor("all are compared", () => {
      const counts = run?.take();
      if (counts !== undefined) taken.push(counts);
      return sum(({ comparedCount }) => comparedCount) === 4;
    });
    expect(sum(({ newlyAllowedCount }) => newlyAllowedCount)).toBe(0);
    // Of four two are used: one of three is left, and the next one is refused.
    expect([sumOf("user", "beganLiveCount"), sumOf("user", "newlyDeniedCount")]).toEqual([1, 1]);
    expect([sumOf("plan", "beganEmptyCount"), sumOf("plan", "newlyDeniedCount")]).toEqual([1, 0]);
  });
}

describe("buckets of a shadow in memory", () => {
  const open = () => new MemoryLimitStore({ clock: realClock, random: realRandom });
  describeBeginnings(() => ({ live: open(), shadow: open() }));
});

describe("buckets of a shadow in Redis", () => {
  const shared = shareTestStore("redis");
  describeBeginnings(() => {
    const { store, connections } = shared.opened;
    const onBadBuckets = (): void => {};
    const shadow = new RedisLimitStore({ connections, keyPrefix: "shadow:r1:", onBadBuckets });
    return { live: store, shadow };
  });
});
