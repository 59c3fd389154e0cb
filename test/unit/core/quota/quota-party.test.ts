import { describe, expect, it } from "vitest";
import { quotaCrowdsMax } from "../../../../src/core/quota/quota.js";
import { createParty, largestCrowds } from "../../../../src/core/quota/quota-party.js";

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
