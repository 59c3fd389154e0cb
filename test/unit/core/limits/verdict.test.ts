import { describe, expect, it } from "vitest";
import { type Charge, unitsPerHit } from "../../../../src/core/limits/bucket.js";
import { decideRequest } from "../../../../src/core/limits/gcra.js";
import type { Limit, LimitKey, Role } from "../../../../src/core/limits/limit.js";
import {
  type DecidedLimit,
  descriptorVerdict,
  headerSeconds,
  periodSeconds,
  unmatchedVerdict,
} from "../../../../src/core/limits/verdict.js";
import { testLimit } from "../../../support/policies.js";

const nowUs = 1_000_000_000;

/** The limit asked for `cost` with `usedHits` in its bucket, as the law finds it. */
function decided(limit: Limit, usedHits: number, cost = 1): DecidedLimit {
  const charge: Charge = {
    key: `${limit.name}` as LimitKey,
    hits: limit.hits,
    periodUs: limit.periodUs,
    burst: limit.burst,
    cost,
    role: limit.role,
    isRefund: false,
    peekExhausted: limit.peek === "exhausted",
  };
  const stored = usedHits === 0 ? undefined : { level: usedHits * unitsPerHit, tUs: nowUs };
  const table = { get: () => stored, set: () => undefined, delete: () => undefined };
  const [result] = decideRequest([charge], table, nowUs).results;
  if (result === undefined) throw new Error("the law answers every charge");
  return { limit, charge, result };
}

describe("descriptorVerdict()", () => {
  it("reports what is left and the time to full when the charge fits", () => {
    expect(descriptorVerdict([decided(testLimit(10), 4)], nowUs)).toEqual({
      isOver: false,
      currentLimit: testLimit(10),
      limitRemaining: 5,
      durationUntilResetUs: 30_000_000,
    });
  });

  it("reports nothing left and the time to ask again when the charge does not fit", () => {
    expect(descriptorVerdict([decided(testLimit(10), 10, 2)], nowUs)).toMatchObject({
      isOver: true,
      limitRemaining: 0,
      durationUntilResetUs: 12_000_000,
    });
  });

  it.each<{ story: string; limit: Limit; cost: number; resetUs: number }>([
    { story: "a cost above the burst", limit: testLimit(10), cost: 11, resetUs: 60_000_000 },
    { story: "a blocked rule", limit: testLimit(0), cost: 1, resetUs: 60_000_000 },
    {
      story: "a cost above a small burst",
      limit: testLimit(10, { burst: 2 }),
      cost: 3,
      resetUs: 12_000_000,
    },
  ])("tells $story, which never fits, a full bucket's time", ({ limit, cost, resetUs }) => {
    const verdict = descriptorVerdict([decided(limit, 0, cost)], nowUs);
    expect(verdict).toMatchObject({
      isOver: true,
      limitRemaining: 0,
      durationUntilResetUs: resetUs,
    });
  });

  it.each([
    { role: "shadow", resetUs: 60_000_000 },
    // It is stored all the same.
    { role: "shadowSettle", resetUs: 66_000_000 },
  ] as const)("reports a $role limit that is over as not over", ({ role, resetUs }) => {
    const verdict = descriptorVerdict([decided(testLimit(10, { role }), 10)], nowUs);
    expect(verdict).toMatchObject({
      isOver: false,
      limitRemaining: 0,
      durationUntilResetUs: resetUs,
    });
  });

  it.each<{ story: string; roles: readonly [Role, Role]; used: [number, number]; shown: string }>([
    {
      story: "the one that is over",
      roles: ["enforce", "enforce"],
      used: [10, 99],
      shown: "small",
    },
    {
      story: "the longest wait of two over",
      roles: ["enforce", "quota"],
      used: [10, 100],
      shown: "large",
    },
    { story: "the fewest hits left", roles: ["enforce", "enforce"], used: [1, 95], shown: "large" },
    {
      story: "the longer reset of two equally left",
      roles: ["enforce", "enforce"],
      used: [5, 95],
      shown: "large",
    },
    {
      story: "a real limit before a shadow one that is over",
      roles: ["enforce", "shadow"],
      used: [10, 100],
      shown: "small",
    },
  ])("shows $story of several limits", ({ roles, used, shown }) => {
    const small = testLimit(10, { name: "small", role: roles[0] });
    const large = testLimit(100, {
      name: "large",
      role: roles[1],
      periodUs: 86_400_000_000,
      unit: "day",
    });
    const both = [decided(small, used[0]), decided(large, used[1])];
    expect(descriptorVerdict(both, nowUs).currentLimit?.name).toBe(shown);
    expect(descriptorVerdict([...both].reverse(), nowUs).currentLimit?.name).toBe(shown);
  });

  it("is the unmatched verdict without limits", () => {
    expect(descriptorVerdict([], nowUs)).toBe(unmatchedVerdict);
  });
});

describe("headerSeconds()", () => {
  it.each([
    { us: 0, seconds: 0 },
    { us: 1, seconds: 1 },
    { us: 1_000_000, seconds: 1 },
    { us: 1_000_001, seconds: 2 },
  ])("rounds $us us up to $seconds s", ({ us, seconds }) => {
    expect(headerSeconds(us)).toBe(seconds);
  });
});

describe("periodSeconds()", () => {
  it("multiplies the unit's length", () => {
    expect(periodSeconds("minute", 5)).toBe(300);
    expect(periodSeconds("month", 1)).toBe(30 * 86_400);
    expect(periodSeconds("year", 1)).toBe(365 * 86_400);
  });
});
