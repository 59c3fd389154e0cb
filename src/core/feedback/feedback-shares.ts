import { ClaimColumns, fairColumns, fairShares } from "./fair-share.js";
import type { NodeShare } from "./feedback.js";
import type { ShareTable } from "./share-table.js";

/** What one Envoy could use of a service's limit. */
export interface NodeClaim {
  /** As in `NodeReport`. */
  readonly owner?: string | undefined;
  /** Requests that it would have in work at once: from 0, with fractions. */
  readonly demand: number;
  /** Of them, those at HIGH; undefined: the service has no routes there. */
  readonly highDemand: number | undefined;
  /**
   * What is set aside for it whatever it needs, a whole number from 0: of an Envoy that is silent,
   * its share; of one that does not follow, what it may hold. Undefined: what it needs counts.
   */
  readonly reserved: number | undefined;
}

/** Envoys from which on a decision is taken in turns: fewer take about a millisecond. */
export const turnNodes = 1_000;

/** The part of a limit that HIGH may have, unless it uses more. */
const highRatioMax = 2 / 3;

/** The largest threshold of an Envoy. */
const wholeMax = 2 ** 32 - 1;

/** What one Envoy is to have, in whole numbers. */
export interface ShareTarget<Claim extends NodeClaim = NodeClaim> {
  readonly claim: Claim;
  /** At both priorities together: from 1. */
  readonly total: number;
  /** Of it, at HIGH at least; less than `total`. */
  readonly high: number;
  /** The part of it that HIGH has where there is more than is needed: 0 to 1. */
  readonly highRatio: number;
}

/**
 * Divides a limit among Envoys, in turns: first among identities by what their Envoys need
 * together, so that who calls itself by a thousand names takes no more from others than by one. Of
 * an identity's part its Envoys have first what is set aside and what is needed at HIGH, then what
 * is needed at DEFAULT, by water-filling with a floor of one, then what is left in proportion to
 * that, so that bursts find room where traffic is.
 *
 * What is needed is the demand d and room for its chance: `d + 2 * sqrt(d) + 1`; at HIGH twice that
 * room, since nobody there should be refused for an estimate: of requests that come by chance, more
 * are in work once in 30,000 times. But all room at HIGH, as far as it is not in use, has to fit
 * into two thirds of the limit: the others are not to be refused for an estimate, either.
 *
 * Example: 100 among demands of 4, 9 and 100: 9, 16 and 75. Among 4 and 9 alone: 36 and 64. With a
 * floor of one each and a limit of 2 among three: 1, 1 and 1. If 4 and 9 are one identity's and
 * three of 100 another one's: 9, 16, 25, 25 and 25.
 *
 * @param limit a whole number from 1
 * @param least what each has at least: 1, or 2 where all have routes at HIGH, and so one at each
 *   priority, since what nobody says of HIGH is what is configured there
 * @returns one for each claim, those of an identity one behind the other: totals that add up to
 *   the limit, or less where nobody is there whose need counts; more only where an identity's part
 *   is less than its Envoys have at least, and by no more than that
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

/** The part of each identity: what its Envoys need, and of what is left by what may grow of it. */
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
 * A share at both priorities. HIGH has what it needs first, but one is left to DEFAULT.
 *
 * Example: 10, of which HIGH needs 3 and is a quarter of the demand: 7 and 3. 20: 15 and 5. 1: 1
 * and 0, which says nothing of HIGH.
 */
export function splitShare(
  share: number,
  { high, highRatio }: Pick<ShareTarget, "high" | "highRatio">,
): NodeShare {
  const most = share - 1;
  const part = Math.min(most, Math.max(high, Math.floor(share * highRatio)));
  return { default: share - part, high: part };
}

/** Of an Envoy that has what is set aside for it, the rest is for others. */
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

/** Targets of Envoys, each with its name and with what it was granted of its target. */
type GrantedTarget = ShareTarget<
  NodeClaim & {
    readonly node: { readonly nodeId: string };
    readonly entry: { readonly share: number };
  }
>;

/** What all were granted; the same object where it says the same. */
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
