import { describe, expect, it } from "vitest";
import { fairShares } from "../../../../src/core/feedback/fair-share.js";
import { type DivisionColumns, divideRate } from "../../../../src/core/quota/quota-division.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { seedsFrom } from "../../../support/seeds.js";

describe("divideRate()", () => {
  it.each([
    { rate: 100, most: [10, 50, 80], least: [0, 0, 0], weight: [1, 1, 1], shares: [10, 45, 45] },
    { rate: 100, most: [10, 20, 40], least: [0, 0, 0], weight: [1, 1, 1], shares: [20, 30, 50] },
    { rate: 100, most: [90, 90, 90], least: [0, 0, 0], weight: [1, 1, 3], shares: [20, 20, 60] },
    { rate: 100, most: [99, 0, 99], least: [10, 10, 10], weight: [1, 1, 1], shares: [45, 10, 45] },
    { rate: 10, most: [99, 99, 99], least: [9, 9, 9], weight: [1, 1, 1], shares: [3, 3, 3] },
    { rate: 0, most: [5, 5, 5], least: [0, 0, 0], weight: [1, 1, 1], shares: [0, 0, 0] },
  ])("divides $rate among $most with floors $least: $shares", ({ rate, shares, ...columns }) => {
    expect(divided(rate, columns)).toEqual(shares);
  });

  it.each(seedsFrom(1, 50))(
    "gives what fairShares gives, but for a few units (seed %i)",
    (seed) => {
      const random = new FakeRandom(seed);
      const some = (end: number): number => Math.floor(random.next() * end);
      const claims = Array.from({ length: 1 + some(40) }, () => ({
        demand: some(1_000_000),
        floor: some(1_000),
        weight: 1 + some(3),
      }));
      const demand = claims.reduce((sum, claim) => sum + Math.max(claim.demand, claim.floor), 0);
      // What nobody asks for fairShares leaves, and this lends.
      const rate = Math.floor(demand * random.next());
      const shares = divided(rate, {
        most: claims.map((claim) => claim.demand),
        least: claims.map(({ floor }) => floor),
        weight: claims.map(({ weight }) => weight),
      });
      const expected = fairShares(rate, claims);
      expect(shares.reduce((sum, share) => sum + share, 0)).toBeLessThanOrEqual(rate);
      shares.forEach((share, i) => {
        expect(Math.abs(share - (expected[i] ?? 0))).toBeLessThanOrEqual(4);
      });
    },
  );
});

type Rows = Readonly<Record<"most" | "least" | "weight", readonly number[]>>;

function divided(rate: number, { most, least, weight }: Rows): readonly number[] {
  const columns: DivisionColumns = {
    most: Float64Array.from(most),
    least: Float64Array.from(least),
    weight: Float64Array.from(weight),
    target: new Float64Array(most.length),
  };
  divideRate(rate, columns, most.length);
  return [...columns.target];
}
