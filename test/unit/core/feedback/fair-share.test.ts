import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  fairShares,
  type ShareClaim,
  shareClaimsMax,
} from "../../../../src/core/feedback/fair-share.js";
import { propertyRuns } from "../../../support/seeds.js";

function claims(
  demands: readonly number[],
  { floor = 0, weights = [] }: { floor?: number; weights?: readonly number[] } = {},
): readonly ShareClaim[] {
  return demands.map((demand, i) => ({ demand, floor, weight: weights[i] ?? 1 }));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

const anyClaims = fc.array(
  fc.record({
    demand: fc.oneof(fc.nat(20), fc.nat(1_000_000)),
    floor: fc.nat(3),
    weight: fc.oneof(fc.constant(1), fc.double({ min: 0.01, max: 100, noNaN: true })),
  }),
  { minLength: 1, maxLength: 20, size: "max" },
);
const anyLimit = fc.oneof(fc.nat(100), fc.nat(2_000_000));

describe("fairShares()", () => {
  it.each([
    { limit: 10, of: claims([2, 8, 8]), shares: [2, 4, 4] },
    { limit: 10, of: claims([8, 8, 8]), shares: [4, 3, 3] },
    { limit: 11, of: claims([8, 8, 8]), shares: [4, 4, 3] },
    { limit: 12, of: claims([8, 8, 8], { weights: [1, 1, 2] }), shares: [3, 3, 6] },
    { limit: 100, of: claims([2, 8, 8]), shares: [2, 8, 8] },
    { limit: 0, of: claims([2, 8]), shares: [0, 0] },
    { limit: 5, of: claims([]), shares: [] },
    { limit: 10, of: claims([0, 100], { floor: 1 }), shares: [1, 9] },
    { limit: 2, of: claims([9, 9, 9], { floor: 1 }), shares: [1, 1, 0] },
    { limit: 3, of: claims([9, 9, 9], { floor: 1 }), shares: [1, 1, 1] },
    { limit: 2 ** 40, of: claims([2 ** 50, 2 ** 50, 7]), shares: [2 ** 39 - 3, 2 ** 39 - 4, 7] },
  ])("divides $limit into $shares", ({ limit, of, shares }) => {
    expect(fairShares(limit, of)).toEqual(shares);
  });

  it("divides all of the limit, or what is asked for, exactly and in whole numbers", () => {
    fc.assert(
      fc.property(anyLimit, anyClaims, (limit, of) => {
        const shares = fairShares(limit, of);
        const asked = sum(of.map(({ demand, floor }) => Math.max(demand, floor)));
        expect(sum(shares)).toBe(Math.min(limit, asked));
        expect(shares.every((share) => Number.isInteger(share) && share >= 0)).toBe(true);
      }),
      propertyRuns(100),
    );
  });

  it("gives nobody more than it asks for, and everybody its floor where that is possible", () => {
    fc.assert(
      fc.property(anyLimit, anyClaims, (limit, of) => {
        const isRoomy = sum(of.map(({ floor }) => floor)) <= limit;
        fairShares(limit, of).forEach((share, i) => {
          const { demand = 0, floor = 0 } = of[i] ?? {};
          expect(share).toBeLessThanOrEqual(Math.max(demand, floor));
          if (isRoomy) expect(share).toBeGreaterThanOrEqual(floor);
        });
      }),
      propertyRuns(100),
    );
  });

  it("lets nobody have more than another by its weight, who would take more", () => {
    fc.assert(
      fc.property(anyLimit, anyClaims, (limit, of) => {
        const shares = fairShares(limit, of);
        of.forEach((rich, i) => {
          const richShare = shares[i] ?? 0;
          if (richShare <= rich.floor) return;
          of.forEach((poor, j) => {
            const poorShare = shares[j] ?? 0;
            if (poorShare >= poor.demand) return;
            // One more for the poor would need a level that the rich one is not above by a whole.
            const level = (poorShare + 1) / poor.weight;
            expect((richShare - 1) / rich.weight).toBeLessThanOrEqual(level * (1 + 1e-12));
          });
        });
      }),
      propertyRuns(100),
    );
  });

  it("takes nothing from anybody when the limit grows", () => {
    fc.assert(
      fc.property(anyLimit, fc.nat(50), anyClaims, (limit, more, of) => {
        const before = fairShares(limit, of);
        const after = fairShares(limit + more, of);
        // Below the floors another division holds, that of the floors.
        if (sum(of.map(({ floor }) => floor)) > limit) return;
        const losers = after.filter((share, i) => share < (before[i] ?? 0));
        expect(losers).toEqual([]);
      }),
      propertyRuns(100),
    );
  });

  it("divides among as many as there may be", () => {
    const of = Array.from({ length: shareClaimsMax }, (_, i) => ({
      demand: i,
      floor: 1,
      weight: 1 + (i % 3),
    }));
    expect(sum(fairShares(1_000_000, of))).toBe(1_000_000);
  });
});
