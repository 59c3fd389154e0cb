import { describe, expect, it } from "vitest";
import { sha256 } from "../../../../src/app/base/sha256.js";
import { type DescriptorEntry, limitKey } from "../../../../src/core/limits/key.js";
import type { RegionShare } from "../../../../src/core/limits/lending.js";
import type { Override } from "../../../../src/core/limits/override.js";
import { noOverrides, OverrideTable } from "../../../../src/core/limits/override-table.js";
import { findReach } from "../../../../src/decide/quota/quota-reach.js";
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
      - {key: all, rate_limit: {unit: second, requests_per_unit: 10, burst: 21, spread: global}}
`);

interface ReachCase {
  readonly overrides?: OverrideTable;
  readonly isOverflow?: boolean;
  readonly isShadow?: boolean;
  readonly region?: RegionShare;
}

function reachOf(
  [key, value]: readonly [string, string],
  { overrides = noOverrides, isOverflow = false, isShadow = false, region }: ReachCase = {},
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
    const { mode, limits, charged, onStoreFailure } = reachOf(["tenant", "a"]);
    expect([mode, onStoreFailure]).toEqual(["limited", "allow"]);
    expect(limits).toEqual([
      { hits: 10, periodUs: 1_000_000, burst: 20 },
      { hits: 1_000, periodUs: 86_400_000_000, burst: 1_000 },
    ]);
    const entries = [{ key: "tenant", value: "a" }];
    expect(charged.map(({ charge: { key, role } }) => [key, role])).toEqual([
      [limitKey("edge", entries, { name: "pace", periodUs: 1_000_000 }), "settle"],
      [limitKey("edge", entries, { name: "daily", periodUs: 86_400_000_000 }), "settle"],
    ]);
  });

  it.each([
    ["tried", "counted", 1],
    ["shut", "denied", 0],
    ["free", "unlimited", 0],
    ["nobody", "unlimited", 0],
  ] as const)("makes of a rule %s what is %s", (key, mode, chargedCount) => {
    const reach = reachOf([key, "x"]);
    expect([reach.mode, reach.charged.length]).toEqual([mode, chargedCount]);
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
    const { limits, charged } = reachOf(["all", "a"], { region: { index: 0, count: 2 } });
    expect(limits).toEqual([{ hits: 10, periodUs: 2_000_000, burst: 11 }]);
    expect(charged.map(({ charge: { periodUs, burst } }) => [periodUs, burst])).toEqual([
      [2_000_000, 11],
    ]);
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
