import { type QuotaCrowd, quotaCrowdsMax } from "./quota.js";

/** The holders of one identity in one pool. */
export interface QuotaParty {
  /** As in `QuotaCrowd`. */
  readonly identity: string;
  /** The number of holders, including those with a closed stream. */
  holderCount: number;
  /** How many holders with an open stream have `oneWeight`: all of them, in most parties. */
  oneCount: number;
  oneWeight: number;
  /** The others, counted by weight. Undefined if there were none: a map of one takes 100 bytes. */
  others: Map<number, number> | undefined;
  /** The sum of the individual weights of holders with an open stream. */
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
  // Spelled out: a spread takes 100 bytes more.
  return {
    identity,
    holderCount: 0,
    oneCount: 0,
    oneWeight: 1,
    others: undefined,
    weight: 0,
    crowd: 0,
    elsewhere: 0,
    openHits: 0,
    openMs: nowMs,
  };
}

/**
 * Counts a holder with an open stream that has come or gone.
 *
 * @returns the change of the party's combined weight
 */
export function countMember(party: QuotaParty | undefined, weight: number, change: 1 | -1): number {
  if (party === undefined) return 0;
  const before = partsWeight(party);
  if (party.oneCount === 0 && party.others === undefined) party.oneWeight = weight;
  if (weight === party.oneWeight) party.oneCount += change;
  else {
    party.others ??= new Map();
    const count = (party.others.get(weight) ?? 0) + change;
    // Envoys choose their weights: those that are gone are not kept.
    if (count === 0) party.others.delete(weight);
    else party.others.set(weight, count);
  }
  party.weight += weight * change;
  party.crowd = party.oneCount;
  // No spread, because the number of arguments is limited.
  for (const count of party.others?.values() ?? []) party.crowd = Math.max(party.crowd, count);
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

/** The parties of a pool, by identity. Most pools have one, and a map takes 200 bytes. */
export class QuotaParties {
  #only: QuotaParty | undefined;
  #all: Map<string, QuotaParty> | undefined;

  get(identity: string): QuotaParty | undefined {
    if (this.#all !== undefined) return this.#all.get(identity);
    return this.#only?.identity === identity ? this.#only : undefined;
  }

  add(party: QuotaParty): void {
    if (this.#all === undefined && this.#only !== undefined && this.#only !== party) {
      this.#all = new Map([[this.#only.identity, this.#only]]);
      this.#only = undefined;
    }
    if (this.#all === undefined) this.#only = party;
    else this.#all.set(party.identity, party);
  }

  delete(party: QuotaParty): void {
    this.#all?.delete(party.identity);
    if (this.#only === party) this.#only = undefined;
  }

  /** Visits each party. `visit` may delete the party that it is called with. */
  each(visit: (party: QuotaParty) => void): void {
    if (this.#all !== undefined) this.#all.forEach(visit);
    else if (this.#only !== undefined) visit(this.#only);
  }

  /** See `largestCrowds`. */
  crowds(): readonly QuotaCrowd[] {
    const only = this.#only;
    if (this.#all !== undefined) return largestCrowds(this.#all.values());
    if (only === undefined || only.crowd === 0) return noCrowds;
    return [{ identity: only.identity, count: only.crowd }];
  }
}

const noCrowds: readonly QuotaCrowd[] = [];

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
