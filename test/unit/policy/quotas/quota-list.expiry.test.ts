import { describe, expect, it } from "vitest";
import type { Limit, Rule } from "../../../../src/core/limits/limit.js";
import { expiredQuota, shareOf } from "../../../../src/policy/quotas/quota-list.js";

function limit(hits: number, seconds: number, more: Partial<Limit> = {}): Limit {
  return {
    hits,
    unit: "second",
    unitMultiplier: seconds,
    periodUs: seconds * 1_000_000,
    burst: hits,
    role: "enforce",
    peek: "debt",
    onStoreFailure: "local",
    ...more,
  };
}

function rule(...limits: readonly Limit[]): Rule {
  const effect =
    limits.length === 0 ? ({ kind: "unlimited" } as const) : ({ kind: "limited", limits } as const);
  return { domain: "shop", path: [{ key: "a" }], effect, label: "a", index: 0 };
}

const day = 86_400;

describe("shareOf()", () => {
  it.each([
    [
      "exact, by a longer period",
      limit(1_000, 1),
      3,
      { hits: 1_000, periodSeconds: 3, burst: 333 },
    ],
    ["alone", limit(5, 60), 1, { hits: 5, periodSeconds: 60, burst: 5 }],
    ["a burst of one at least", limit(2, 1), 9, { hits: 2, periodSeconds: 9, burst: 1 }],
    ["of a day", limit(1_000, day), 7, { hits: 142, periodSeconds: day, burst: 142 }],
    ["less than one a day", limit(10, day), 100, { hits: 1, periodSeconds: 10 * day, burst: 1 }],
    ["rounded down", limit(30, day), 100, { hits: 1, periodSeconds: 288_000, burst: 1 }],
  ])("divides %s", (_, whole, sharers, share) => {
    expect(shareOf(whole, sharers)).toEqual(share);
    const perSecond = (whole.hits * 1_000_000) / whole.periodUs;
    expect((share.hits / share.periodSeconds) * sharers).toBeLessThanOrEqual(perSecond * 1.000_001);
  });
});

describe("expiredQuota()", () => {
  const expiry = { fallback: "limit", forSeconds: 60 } as const;

  it("takes the slowest limit that may be met, and the smallest burst", () => {
    const met = [rule(limit(100, 1), limit(1_000, 60, { burst: 50 })), rule(limit(20, 1))];
    expect(expiredQuota(expiry, met, 1)).toEqual({
      forSeconds: 60,
      fallback: { kind: "tokens", rate: { hits: 1_000, periodSeconds: 60, burst: 20 } },
    });
  });

  it("lets pass what is not limited, or only counted", () => {
    const allowed = { forSeconds: 60, fallback: { kind: "blanket", rule: "allow" } };
    expect(expiredQuota(expiry, [rule()], 1)).toEqual(allowed);
    expect(expiredQuota(expiry, [rule(limit(1, 1, { role: "shadow" }))], 1)).toEqual(allowed);
    expect(expiredQuota({ ...expiry, fallback: "allow" }, [rule(limit(1, 1))], 1)).toEqual(allowed);
  });

  it("refuses what a limit blocks, and what the policy says", () => {
    const denied = { forSeconds: 60, fallback: { kind: "blanket", rule: "deny" } };
    expect(expiredQuota(expiry, [rule(limit(5, 1), limit(0, 1))], 1)).toEqual(denied);
    expect(expiredQuota({ ...expiry, fallback: "deny" }, [rule(limit(1, 1))], 1)).toEqual(denied);
  });
});
