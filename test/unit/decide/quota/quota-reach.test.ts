import { describe, expect, it } from "vitest";
import { sha256 } from "../../../../src/app/base/sha256.js";
import { type DescriptorEntry, limitKey } from "../../../../src/core/limits/key.js";
import type { RegionShare } from "../../../../src/core/limits/lending.js";
import type { Rule } from "../../../../src/core/limits/limit.js";
import type { Override } from "../../../../src/core/limits/override.js";
import { noOverrides, OverrideTable } from "../../../../src/core/limits/override-table.js";
import { findReach, type QuotaPlan } from "../../../../src/decide/quota/quota-reach.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import { WindowSource } from "../../../../src/decide/rate-limit/window-source.js";
import { quotaPolicy } from "../../../support/quota-rig.js";
import { noSwitches } from "../../../support/switches.js";

const policy = quotaPolicy(`
rateLimits:
  - domain: edge
    on_store_failure: allow
    descriptors:
      - key: tenant
        rate_limits:
          - {name: pace, unit: second, requests_per_unit: 10, burst: 20}
          - {name: daily, period: 1d, requests_per_unit: 1000}
      - {key: tried, rate_limit: {unit: second, requests_per_unit: 5}, shadow_mode: true}
      - {key: shut, rate_limit: {unit: second, requests_per_unit: 0}}
      - {key: free, rate_limit: {unlimited: true}}
      - key: shared
        value: p*
        share_threshold: true
        rate_limit: {unit: second, requests_per_unit: 9}
      - {key: all, rate_limit: {unit: second, requests_per_unit: 10, burst: 21, spread: global}}
`);

interface ReachCase {
  readonly overrides?: OverrideTable;
  readonly isOverflow?: boolean;
  readonly isShadow?: boolean;
  readonly region?: RegionShare;
  readonly plans?: Map<Rule, QuotaPlan>;
}

function reachOf(
  [key, value]: readonly [string, string],
  {
    overrides = noOverrides,
    isOverflow = false,
    isShadow = false,
    region,
    plans = new Map(),
  }: ReachCase = {},
) {
  const entries: readonly DescriptorEntry[] = [{ key, value }];
  return findReach(
    { domain: "edge", entries, isOverflow },
    {
      policy,
      overrides,
      counters: new DecisionCounters(),
      switches: { ...noSwitches, isShadow },
      digest: sha256,
      nowMs: 0,
      epochUs: 0,
      windowSource: new WindowSource(),
      plans,
      region,
    },
  );
}

function overrideOf(effect: Override["effect"]): OverrideTable {
  const entries = [{ key: "tenant", value: "a" }];
  const reported = { reason: "", author: "", createdEpochMs: 0 };
  const one = {
    id: "one",
    domain: "edge",
    entries,
    isPrefix: false,
    limitName: "pace",
    ...reported,
  };
  return new OverrideTable([{ ...one, effect }], 1, 0);
}

describe("findReach()", () => {
  it("finds the limits that a call would, under their keys, to be settled", () => {
    const reach = reachOf(["tenant", "a"]);
    const { mode, limits, onStoreFailure } = reach;
    expect([mode, onStoreFailure]).toEqual(["limited", "allow"]);
    expect(limits).toEqual([
      { hits: 10, periodUs: 1_000_000, burst: 20 },
      { hits: 1_000, periodUs: 86_400_000_000, burst: 1_000 },
    ]);
    const entries = [{ key: "tenant", value: "a" }];
    expect(reach.charges(3).map(({ key, role, cost }) => [key, role, cost])).toEqual([
      [limitKey("edge", entries, { name: "pace", periodUs: 1_000_000 }), "settle", 3],
      [limitKey("edge", entries, { name: "daily", periodUs: 86_400_000_000 }), "settle", 3],
    ]);
  });

  it.each([
    ["tried", "counted", 1],
    ["shut", "denied", 0],
    ["free", "unlimited", 0],
    ["nobody", "unlimited", 0],
  ] as const)("makes of a rule %s what is %s", (key, mode, chargedCount) => {
    const reach = reachOf([key, "x"]);
    expect([reach.mode, reach.chargeCount]).toEqual([mode, chargedCount]);
  });

  it("counts everything where nobody is refused", () => {
    expect(reachOf(["tenant", "a"], { isShadow: true }).mode).toBe("counted");
  });

  it("goes by an override, in the same pool; a freeze denies", () => {
    const plain = reachOf(["tenant", "a"]);
    const overrides = overrideOf({ kind: "amount", hits: 3, burst: 4 });
    const other = reachOf(["tenant", "a"], { overrides });
    expect(other.identity).toBe(plain.identity);
    expect(other.limits[0]).toEqual({ hits: 3, periodUs: 1_000_000, burst: 4 });
    const frozen = reachOf(["tenant", "a"], { overrides: overrideOf({ kind: "frozen" }) });
    expect([frozen.mode, frozen.identity]).toEqual(["denied", plain.identity]);
  });

  /** The whole rate was assigned in each region. */
  it("has this region's part of a global limit, where there are regions", () => {
    expect(reachOf(["all", "a"]).limits).toEqual([{ hits: 10, periodUs: 1_000_000, burst: 21 }]);
    const reach = reachOf(["all", "a"], { region: { index: 0, count: 2 } });
    expect(reach.limits).toEqual([{ hits: 10, periodUs: 2_000_000, burst: 11 }]);
    expect(reach.charges(1)).toMatchObject([{ periodUs: 2_000_000, burst: 11 }]);
  });

  it.each(["tenant", "tried", "shut", "free", "shared"])(
    "finds the same for the next bucket of a rule %s as for the first one",
    (key) => {
      const plans = new Map<Rule, QuotaPlan>();
      for (const value of ["a", "b", "p1", "p2", "\u{d800}", "x".repeat(300)]) {
        const [next, first] = [reachOf([key, value], { plans }), reachOf([key, value])];
        expect(next.identity).toBe(first.identity);
        expect(next.charges(1)).toEqual(first.charges(1));
        expect([next.mode, next.limits]).toEqual([first.mode, first.limits]);
      }
      // All of them have one plan, but for those that match another rule.
      expect(plans.size).toBe(1);
    },
  );

  it("keeps no override as the plan of a rule, and goes by one that came later", () => {
    const plans = new Map<Rule, QuotaPlan>();
    const overrides = overrideOf({ kind: "amount", hits: 3, burst: 4 });
    expect(reachOf(["tenant", "a"], { plans, overrides }).limits[0]?.hits).toBe(3);
    expect(reachOf(["tenant", "a"], { plans }).limits[0]?.hits).toBe(10);
    expect(reachOf(["tenant", "a"], { plans, overrides }).limits[0]?.hits).toBe(3);
    const overflow = { plans, isOverflow: true };
    expect(reachOf(["tenant", "b"], overflow).identity).toBe(
      reachOf(["tenant", "c"], overflow).identity,
    );
  });

  it("has one pool for all that overflows, and others for others", () => {
    const [a, b] = ["a", "b"].map((value) => reachOf(["tenant", value]).identity);
    const [c, d] = ["c", "d"].map(
      (value) => reachOf(["tenant", value], { isOverflow: true }).identity,
    );
    expect(c).toBe(d);
    expect(new Set([a, b, c]).size).toBe(3);
  });
});
