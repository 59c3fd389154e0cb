import { describe, expect, it } from "vitest";
import { quotaCrowdsMax } from "../../../../src/core/quota/quota.js";
import {
  countMember,
  createParty,
  largestCrowds,
  partsWeight,
} from "../../../../src/core/quota/quota-party.js";

describe("largestCrowds()", () => {
  const partyOf = (identity: string, crowd: number) => ({ ...createParty(identity, 0), crowd });

  it("tells of the identities with the most Envoys, and of no more than there may be", () => {
    const small = Array.from({ length: 2 * quotaCrowdsMax }, (_, i) => partyOf(`${100 + i}`, 1));
    const assigned = largestCrowds([...small.toReversed(), partyOf("ff", 20), partyOf("gone", 0)]);
    expect(assigned).toHaveLength(quotaCrowdsMax);
    expect(assigned[0]).toEqual({ identity: "ff", count: 20 });
    // Of equal ones every replica chooses the same.
    expect(assigned.at(-1)).toEqual({ identity: `${100 + quotaCrowdsMax - 2}`, count: 1 });
  });
});

describe("countMember()", () => {
  it("follows Envoys of several weights, and keeps nothing of those that are gone", () => {
    const party = createParty("ff", 0);
    expect(countMember(party, 2, 1)).toBe(2);
    expect(countMember(party, 2, 1)).toBe(0);
    for (let weight = 10; weight < 210; weight += 1) {
      countMember(party, weight, 1);
      countMember(party, weight, -1);
    }
    expect(party.others?.size).toBe(0);
    countMember(party, 5, 1);
    expect(party).toMatchObject({ crowd: 2, weight: 9 });
    expect(partsWeight(party)).toBe(4.5);
    countMember(party, 2, -1);
    countMember(party, 2, -1);
    expect(party).toMatchObject({ crowd: 1, weight: 5 });
  });
});
