import { describe, expect, it } from "vitest";
import {
  type NodeClaim,
  type ShareTarget,
  shareTargets,
  splitShare,
} from "../../../../src/core/feedback/feedback-shares.js";
import { allTurns } from "../../../support/all-turns.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { firstSeed, seedCount } from "../../../support/seeds.js";

interface NamedClaim extends NodeClaim {
  readonly nodeId: string;
}

function claims(...demands: readonly number[]): readonly NamedClaim[] {
  return demands.map((demand, i) => claim(i, { demand }));
}

function claim(i: number, given: Partial<NodeClaim>): NamedClaim {
  return { nodeId: `${i}`, demand: 0, highDemand: undefined, reserved: undefined, ...given };
}

function targetsOf<Claim extends NodeClaim>(
  limit: number,
  all: readonly Claim[],
  least: 1 | 2 = 1,
): readonly ShareTarget<Claim>[] {
  return allTurns(shareTargets(limit, all, least));
}

function totals(limit: number, all: readonly NodeClaim[]): readonly number[] {
  return targetsOf(limit, all).map(({ total }) => total);
}

describe("shareTargets()", () => {
  it.each([
    { limit: 100, demands: [4, 9, 100], shares: [9, 16, 75], why: "the small ones all they need" },
    { limit: 100, demands: [100, 100, 100], shares: [34, 33, 33], why: "the same to the same" },
    { limit: 100, demands: [4, 9], shares: [36, 64], why: "what is left by what is needed" },
    { limit: 2, demands: [4, 9, 100], shares: [1, 1, 1], why: "one to each, whatever there is" },
    { limit: 10, demands: [0, 0], shares: [5, 5], why: "all of it, though nobody needs it" },
    { limit: 10, demands: [], shares: [], why: "nothing to nobody" },
  ])("divides $limit among $demands to $shares: $why", ({ limit, demands, shares }) => {
    expect(totals(limit, claims(...demands))).toEqual(shares);
  });

  it("sets aside what it must before it looks at needs, and gives it no more", () => {
    const all = [claim(0, { demand: 100 }), claim(1, { demand: 100, reserved: 30 })];
    expect(totals(100, all)).toEqual([70, 30]);
    expect(totals(200, all)).toEqual([170, 30]);
  });

  it("leaves one to each, where more is set aside than there is", () => {
    const all = [claim(0, { demand: 9 }), claim(1, { reserved: 1_000 }), claim(2, { demand: 9 })];
    expect(totals(50, all)).toEqual([1, 48, 1]);
  });

  it("gives HIGH nothing of what is set aside", () => {
    const high = claim(0, { demand: 100, highDemand: 100 });
    const targets = targetsOf(20, [high, claim(1, { reserved: 15 })]);
    expect(targets.map(({ total }) => total)).toEqual([5, 15]);
    expect(targets[0]?.high).toBe(4);
  });

  it("gives HIGH what it needs first, of all Envoys", () => {
    const all = [claim(0, { demand: 100 }), claim(1, { demand: 16, highDemand: 16 })];
    const targets = targetsOf(40, all);
    // 16 and room for chance would be 33, of which two thirds of the limit hold 26.
    expect(targets).toEqual([
      { claim: all[0], total: 13, high: 0, highRatio: 0 },
      { claim: all[1], total: 27, high: 26, highRatio: 1 },
    ]);
    const busy = targetsOf(20, all);
    expect(busy.map(({ total, high }) => [total, high])).toEqual([
      [3, 0],
      [17, 16],
    ]);
  });

  it("leaves one to each at both priorities, where all have routes at HIGH", () => {
    const all = [0, 9, 100].map((demand, i) => claim(i, { demand, highDemand: 0 }));
    const split = targetsOf(2, all, 2).map((one) => splitShare(one.total, one));
    expect(split).toEqual([0, 1, 2].map(() => ({ default: 1, high: 1 })));
    const silent = [claim(0, { reserved: 1 }), claim(1, { reserved: 9 })];
    const kept = targetsOf(20, silent, 2);
    expect(kept.map(({ total, high }) => [total, high])).toEqual([
      [2, 1],
      [9, 1],
    ]);
  });

  // Each name of one identity once had a part of its own, and one permit whatever there was.
  it.each([
    { why: "no more to many names", demands: [100], names: 20, other: 100, shares: [50] },
    { why: "their floors in their part", demands: [100], names: 500, other: 9, shares: [50] },
    { why: "to who needs little all of it", demands: [4], names: 20, other: 100, shares: [9] },
    { why: "by need to those of one", demands: [4, 99], names: 2, other: 9, shares: [9, 45] },
  ])("divides a limit among identities first: $why", ({ demands, names, other, shares }) => {
    const honest = claims(...demands).map((one) => ({ ...one, owner: "honest" }));
    const many = Array.from({ length: names }, (_, i) =>
      claim(10 + i, { owner: "other", demand: other, highDemand: other, reserved: undefined }),
    );
    const targets = new Map(
      targetsOf(100, [...many, ...honest]).map((target) => [target.claim.nodeId, target]),
    );
    expect(honest.map(({ nodeId }) => targets.get(nodeId)?.total)).toEqual(shares);
    const left = many.reduce((sum, { nodeId }) => sum + (targets.get(nodeId)?.total ?? 0), 0);
    expect(left).toBe(Math.max(names, 100 - shares.reduce((sum, one) => sum + one, 0)));
  });

  it("sets no more aside than its part for an identity that does not follow", () => {
    const all = [
      claim(0, { owner: "honest", demand: 100 }),
      claim(1, { owner: "other", reserved: 1_024 }),
    ];
    expect(totals(100, all)).toEqual([50, 50]);
    expect(totals(3_000, all)).toEqual([1_976, 1_024]);
  });

  it("divides as it always did where all Envoys are one identity's", () => {
    const all = claims(4, 9, 100).map((one) => ({ ...one, owner: "mesh" }));
    expect(totals(100, all)).toEqual([9, 16, 75]);
    expect(totals(2, all)).toEqual([1, 1, 1]);
  });

  it("adds up to the larger of the limit and the number of Envoys, whatever the claims", () => {
    const seed = firstSeed(7);
    const random = new FakeRandom(seed);
    for (let run = 0; run < seedCount(500); run += 1) {
      const count = 1 + Math.floor(random.next() * 12);
      const limit = 1 + Math.floor(random.next() ** 3 * 500);
      const all = Array.from({ length: count }, (_, i) => {
        const demand = random.next() ** 4 * 400;
        const highDemand = random.next() < 0.5 ? undefined : demand * random.next();
        const reserved = random.next() < 0.2 ? Math.floor(random.next() * 100) : undefined;
        return claim(i, { demand, highDemand, reserved });
      });
      const least = random.next() < 0.5 ? 1 : 2;
      const shares = targetsOf(limit, all, least);
      const sum = shares.reduce((total, share) => total + share.total, 0);
      const bound = Math.max(limit, least * count);
      const isFree = all.some(({ reserved }) => reserved === undefined);
      if (isFree) expect(sum, `seed ${seed}, run ${run}`).toBe(bound);
      else expect(sum, `seed ${seed}, run ${run}`).toBeLessThanOrEqual(bound);
      for (const { total, high } of shares) {
        expect(Number.isInteger(total) && total >= 1 && high >= 0 && high < total).toBe(true);
      }
    }
  });
});

describe("splitShare()", () => {
  it.each([
    { share: 10, high: 3, highRatio: 0.25, default: 7, part: 3, why: "what HIGH needs" },
    { share: 20, high: 3, highRatio: 0.25, default: 15, part: 5, why: "its part of what is there" },
    { share: 3, high: 9, highRatio: 1, default: 1, part: 2, why: "one is left to DEFAULT" },
    { share: 1, high: 9, highRatio: 1, default: 1, part: 0, why: "and nothing said of HIGH" },
    { share: 10, high: 0, highRatio: 0, default: 10, part: 0, why: "nobody asks for HIGH" },
  ])("splits $share to $default and $part: $why", ({ share, high, highRatio, part, ...rest }) => {
    const split = splitShare(share, { high, highRatio });
    expect(split).toEqual({ default: rest.default, high: part });
  });
});
