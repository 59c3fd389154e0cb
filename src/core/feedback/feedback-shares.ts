import { ClaimColumns, fairColumns, fairShares } from "./fair-share.js";
import type { NodeShare } from "./feedback.js";
import type { ShareTable } from "./share-table.js";

/** Claim of one Envoy on a service's limit. */
export interface NodeClaim {
  /** As in `NodeReport`. */
  readonly owner?: string | undefined;
  /** Requests that it would have in flight without a limit: at least 0, with fractions. */
  readonly demand: number;
  /** Those of them at HIGH. Undefined: the service has no routes there. */
  readonly highDemand: number | undefined;
  /**
   * What is set aside for it, whatever its need, a whole number from 0. For a silent Envoy: its
   * share. For one that does not obey: what it may hold. Undefined: its need counts.
   */
  readonly reserved: number | undefined;
}

/** Number of Envoys above which a decision yields in between: fewer take about a millisecond. */
export const turnNodes = 1_000;

/** Maximum part of a limit that HIGH may have, unless it uses more. */
const highRatioMax = 2 / 3;

/** Maximum threshold of an Envoy. */
const wholeMax = 2 ** 32 - 1;

/** Target of one Envoy, in whole numbers. */
export interface ShareTarget<Claim extends NodeClaim = NodeClaim> {
  readonly claim: Claim;
  /** At both priorities together: at least 1. */
  readonly total: number;
  /** Minimum part of it at HIGH. Less than `total`. */
  readonly high: number;
  /** The part of it that HIGH has if there is more than needed: 0 to 1. */
  readonly highRatio: number;
}

/**
 * Divides a limit among Envoys, and yields in between. It divides first among identities, by the
 * total need of their Envoys, so that an identity with a thousand names takes no more from others
 * than with one. From an identity's part, its Envoys first get what is set aside and the need at
 * HIGH, then the need at DEFAULT, by water-filling with a floor of one. The rest is divided in
 * proportion to that, so that bursts find room where traffic is.
 *
 * The need is the demand d and room for variation: `d + 2 * sqrt(d) + 1`. At HIGH the room is twice
 * that, since no request there should be refused for an estimate: with random arrivals, more are in
 * flight once in 30,000 times. But HIGH has at most two thirds of the limit, unless it uses more:
 * other requests should not be refused for an estimate, either.
 *
 * Example: 100 among demands of 4, 9 and 100: 9, 16 and 75. Among 4 and 9 alone: 36 and 64. With a
 * floor of one each and a limit of 2 among three: 1, 1 and 1. If 4 and 9 belong to one identity,
 * and three of 100 to another: 9, 16, 25, 25 and 25.
 *
 * @param limit a whole number from 1
 * @param least minimum of each Envoy: 1, or 2 if all have routes at HIGH: one at each priority,
 *   since without a value for HIGH, the configured one applies
 * @returns one target for each claim, grouped by identity. The totals add up to the limit, or to
 *   less if no claim's need counts. They exceed it only if an identity's part is less than the
 *   minimum of its Envoys, and only by that difference
 */
export function* shareTargets<Claim extends NodeClaim>(
  limit: number,
  claims: readonly Claim[],
  least: 1 | 2 = 1,
): Generator<undefined, readonly ShareTarget<Claim>[]> {
  const parties = byOwner(claims);
  if (parties.length === 1) return yield* partyTargets(limit, claims, least);
  const parts = partyShares(limit, parties, least);
  const targets: ShareTarget<Claim>[] = [];
  for (const [i, party] of parties.entries()) {
    for (const target of yield* partyTargets(parts[i] ?? 0, party, least)) targets.push(target);
  }
  return targets;
}

function byOwner<Claim extends NodeClaim>(claims: readonly Claim[]): readonly (readonly Claim[])[] {
  const [first] = claims;
  if (first !== undefined && claims.every(({ owner }) => owner === first.owner)) return [claims];
  const parties = new Map<string | undefined, Claim[]>();
  let last: Claim[] = [];
  for (const claim of claims) {
    if (last[0]?.owner !== claim.owner || last.length === 0) {
      const known = parties.get(claim.owner);
      last = known ?? [];
      if (known === undefined) parties.set(claim.owner, last);
    }
    last.push(claim);
  }
  return [...parties.values()];
}

/** Returns the part of each identity: its need, and a part of the rest by need not set aside. */
function partyShares(
  limit: number,
  parties: readonly (readonly NodeClaim[])[],
  least: number,
): readonly number[] {
  const needs = parties.map((party) => {
    let fixed = 0;
    let free = 0;
    for (const claim of party) {
      const { reserved } = claim;
      if (reserved === undefined) free += Math.max(least, need(claim), 1 + highNeed(claim));
      else fixed += Math.max(least, reserved);
    }
    return { demand: fixed + free, free };
  });
  const parts = fairShares(
    limit,
    needs.map(({ demand }) => ({ demand, floor: 0, weight: 1 })),
  );
  const left = limit - parts.reduce((sum, part) => sum + part, 0);
  const extras = fairShares(
    left,
    needs.map(({ free }) => ({ demand: free > 0 ? left : 0, floor: 0, weight: Math.max(1, free) })),
  );
  return parts.map((part, i) => part + (extras[i] ?? 0));
}

function* partyTargets<Claim extends NodeClaim>(
  limit: number,
  claims: readonly Claim[],
  least: 1 | 2,
): Generator<undefined, readonly ShareTarget<Claim>[]> {
  const isMany = claims.length > turnNodes;
  if (isMany) yield;
  const bound = Math.max(limit, least * claims.length);
  const aside = claims.reduce((sum, { reserved = 0 }) => sum + Math.max(1, reserved), 0);
  const highMost = Math.max(
    Math.floor(highRatioMax * bound),
    claims.reduce((sum, { highDemand = 0 }) => sum + Math.ceil(highDemand), 0),
  );
  const highClaims = new ClaimColumns(claims.length);
  claims.forEach((claim, i) => {
    highClaims.demands[i] = highNeed(claim);
    highClaims.floors[i] = claim.reserved === undefined ? least - 1 : 0;
  });
  const highs = fairColumns(Math.max(0, Math.min(bound - aside, highMost)), highClaims);
  if (isMany) yield;
  const totalClaims = new ClaimColumns(claims.length);
  claims.forEach((claim, i) => {
    const floor = Math.max(least, 1 + (highs[i] ?? 0), claim.reserved ?? 0);
    totalClaims.demands[i] = Math.max(floor, claim.reserved ?? need(claim));
    totalClaims.floors[i] = floor;
  });
  const totals = fairColumns(bound, totalClaims);
  if (isMany) yield;
  const extras = extraShares(bound - totals.reduce((sum, total) => sum + total, 0), {
    claims,
    totals,
  });
  if (isMany) yield;
  return claims.map((claim, i) => {
    const total = (totals[i] ?? 1) + (extras[i] ?? 0);
    const high = Math.min(Math.max(least - 1, highs[i] ?? 0), total - 1);
    return { claim, total, high, highRatio: highRatioOf(claim) };
  });
}

/**
 * Splits a share between both priorities. HIGH gets what it needs first, but leaves one to DEFAULT.
 *
 * Example: 10, of which HIGH needs 3 and is a quarter of the demand: 7 and 3. 20: 15 and 5. 1: 1
 * and 0, which leaves HIGH as configured.
 */
export function splitShare(
  share: number,
  { high, highRatio }: Pick<ShareTarget, "high" | "highRatio">,
): NodeShare {
  const most = share - 1;
  const part = Math.min(most, Math.max(high, Math.floor(share * highRatio)));
  return { default: share - part, high: part };
}

/** Divides the rest among Envoys for which nothing is set aside. */
function extraShares(
  left: number,
  { claims, totals }: { readonly claims: readonly NodeClaim[]; readonly totals: readonly number[] },
): readonly number[] {
  if (left <= 0) return [];
  const extraClaims = new ClaimColumns(claims.length);
  claims.forEach(({ reserved }, i) => {
    extraClaims.demands[i] = reserved === undefined ? left : 0;
    extraClaims.weights[i] = totals[i] ?? 1;
  });
  return fairColumns(left, extraClaims);
}

function need({ demand }: NodeClaim): number {
  return Math.ceil(demand + 2 * Math.sqrt(demand)) + 1;
}

function highNeed({ highDemand, reserved }: NodeClaim): number {
  if (highDemand === undefined || reserved !== undefined) return 0;
  return Math.ceil(highDemand + 4 * Math.sqrt(highDemand)) + 1;
}

function highRatioOf({ demand, highDemand }: NodeClaim): number {
  return highDemand === undefined || demand <= 0 ? 0 : Math.min(1, highDemand / demand);
}

/** The target of an Envoy, with its name and the share that it was granted. */
type GrantedTarget = ShareTarget<
  NodeClaim & {
    readonly node: { readonly nodeId: string };
    readonly entry: { readonly share: number };
  }
>;

/** Returns the shares that were granted; the same object if nothing has changed. */
export function grantedShares(targets: readonly GrantedTarget[], before: ShareTable): ShareTable {
  const defaults = new Uint32Array(targets.length);
  const highs = new Uint32Array(targets.length);
  targets.forEach((target, row) => {
    const share = splitShare(target.claim.entry.share, target);
    defaults[row] = Math.min(wholeMax, share.default);
    highs[row] = Math.min(wholeMax, share.high);
  });
  const nodeIds = targets.map(({ claim }) => claim.node.nodeId);
  return before.next(nodeIds, { defaults, highs });
}
