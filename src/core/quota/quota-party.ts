import { type QuotaCrowd, quotaCrowdsMax } from "./quota.js";

/** Holders of one identity in one pool. */
export interface QuotaParty {
  /** As `QuotaCrowd` has it. */
  readonly identity: string;
  /** Those that count, with those whose streams are closed. */
  holderCount: number;
  /** Those whose streams are open, by weight. */
  readonly members: { readonly weight: number; count: number }[];
  /** The sum of their weights, each by itself. */
  weight: number;
  /** The most of them that have one weight: how many Envoys they are. */
  crowd: number;
  /** How many it has at other replicas, as far as is known. */
  elsewhere: number;
  /** Hits that were taken of what nothing bounded: see `QuotaMeter`. */
  openHits: number;
  openMs: number;
}

/** A party that has nobody yet. */
export function createParty(identity: string, nowMs: number): QuotaParty {
  const counts = { holderCount: 0, weight: 0, crowd: 0, elsewhere: 0, openHits: 0 };
  return { identity, members: [], ...counts, openMs: nowMs };
}

/** How many Envoys a party is, at all replicas; at least 1. */
export function crowdOf({ crowd, elsewhere }: QuotaParty): number {
  return Math.max(1, crowd + elsewhere);
}

/** What all of a party that are here weigh together. */
export function partsWeight(party: QuotaParty | undefined): number {
  return party === undefined ? 0 : party.weight / crowdOf(party);
}

/** Whose Envoys are here: of many identities those with the most, the same ones everywhere. */
export function largestCrowds(parties: Iterable<QuotaParty>): readonly QuotaCrowd[] {
  const crowds: QuotaCrowd[] = [];
  for (const { identity, crowd } of parties) {
    if (crowd > 0) crowds.push({ identity, count: crowd });
  }
  crowds.sort((a, b) => b.count - a.count || (a.identity < b.identity ? -1 : 1));
  return crowds.slice(0, quotaCrowdsMax);
}
