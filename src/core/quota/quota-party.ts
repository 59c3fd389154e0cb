import { type QuotaCrowd, quotaCrowdsMax } from "./quota.js";

/** The holders of one identity in one pool. */
export interface QuotaParty {
  /** As in `QuotaCrowd`. */
  readonly identity: string;
  /** The number of holders, including those with a closed stream. */
  holderCount: number;
  /** The holders with an open stream, grouped by weight. */
  members: readonly { readonly weight: number; count: number }[];
  /** The sum of their individual weights. */
  weight: number;
  /** The largest number of holders with one weight: how many Envoys the identity has here. */
  crowd: number;
  /** How many Envoys it has at other replicas, as far as is known. */
  elsewhere: number;
  /** Hits accepted from it without an assignment: see `QuotaMeter`. */
  openHits: number;
  openMs: number;
}

/** Creates an empty party. */
export function createParty(identity: string, nowMs: number): QuotaParty {
  const counts = { holderCount: 0, weight: 0, crowd: 0, elsewhere: 0, openHits: 0 };
  return { identity, members: [], ...counts, openMs: nowMs };
}

/**
 * Counts a holder with an open stream that has come or gone.
 *
 * @returns the change of the party's combined weight
 */
export function countMember(party: QuotaParty | undefined, weight: number, change: 1 | -1): number {
  if (party === undefined) return 0;
  const before = partsWeight(party);
  const known = party.members.find((one) => one.weight === weight);
  // Not `push`, which allocates room for 17 elements: most parties have one.
  if (known === undefined) party.members = [...party.members, { weight, count: change }];
  else known.count += change;
  party.weight += weight * change;
  party.crowd = party.members.reduce((most, { count }) => Math.max(most, count), 0);
  return partsWeight(party) - before;
}

/** The number of Envoys of a party at all replicas, at least 1. */
export function crowdOf({ crowd, elsewhere }: QuotaParty): number {
  return Math.max(1, crowd + elsewhere);
}

/** The combined weight of a party's holders at this replica. */
export function partsWeight(party: QuotaParty | undefined): number {
  return party === undefined ? 0 : party.weight / crowdOf(party);
}

/** The identities with the most Envoys here. All replicas choose the same ones. */
export function largestCrowds(parties: Iterable<QuotaParty>): readonly QuotaCrowd[] {
  const largest: QuotaParty[] = [];
  for (const party of parties) {
    const last = largest[quotaCrowdsMax - 1];
    if (party.crowd === 0 || (last !== undefined && !isBefore(party, last))) continue;
    let at = Math.min(largest.length, quotaCrowdsMax - 1);
    // Few are among the largest so far, so a search costs less than to sort all.
    for (; at > 0; at -= 1) {
      const above = largest[at - 1];
      if (above === undefined || isBefore(above, party)) break;
      largest[at] = above;
    }
    largest[at] = party;
  }
  return largest.map(({ identity, crowd }) => ({ identity, count: crowd }));
}

function isBefore(one: QuotaParty, other: QuotaParty): boolean {
  if (one.crowd !== other.crowd) return one.crowd > other.crowd;
  return one.identity < other.identity;
}
