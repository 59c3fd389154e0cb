import type { QuotaClaim, QuotaCrowd, QuotaLease } from "../../core/quota/quota.js";

/** What is known of one replica's part of a pool. Rates in micro-hits a second. */
interface LeaseRecord {
  /** Grows with each claim of the replica. */
  readonly beat: number;
  /** The most that its Envoys may have in force: it falls only when the replica says so. */
  readonly heldMicroHz: number;
  readonly metMicroHz: number;
  readonly metWeight: number;
  readonly hungryMicroHz: number;
  readonly hungryWeight: number;
  readonly crowds: readonly QuotaCrowd[];
  /** Time for which it was claimed, and the end of that by the clock of the table. */
  readonly leaseMs: number;
  readonly untilMs: number;
}

/** What one replica claims of a pool. */
interface LeaseClaim {
  readonly replica: string;
  readonly beat: number;
  readonly claim: QuotaClaim;
  readonly leaseMs: number;
}

/** The records of one pool, by replica. */
export type LeaseRecords = Map<string, LeaseRecord>;

/**
 * Takes a claim down and answers what the replica may hand out from now on; undefined for a claim
 * that was overtaken by a later one. A store that others share does this once more, where
 * its data is.
 *
 * What keeps the sum within the ceiling: a grant is recorded before it is answered; a record falls
 * only by what its replica says, so who is asked to give back keeps what its Envoys may still use;
 * what is granted on top is at most what the others' records leave of the ceiling.
 *
 * Of each identity that is claimed for it tells what the others have of it.
 *
 * A time further ahead than its lease is what a clock that stepped back has left: it becomes a
 * lease from now.
 */
export function takeClaim(
  records: LeaseRecords,
  { replica, beat, claim, leaseMs }: LeaseClaim,
  nowMs: number,
): Omit<QuotaLease, "untilMs"> | undefined {
  dropEnded(records, nowMs);
  const before = records.get(replica);
  if (before !== undefined && before.beat > beat) return undefined;
  const own: LeaseRecord = {
    beat,
    heldMicroHz: claim.heldMicroHz,
    metMicroHz: claim.metMicroHz,
    metWeight: Math.max(0, claim.weight - claim.hungryWeight),
    hungryMicroHz: claim.hungryMicroHz,
    hungryWeight: claim.hungryWeight,
    crowds: claim.crowds,
    leaseMs,
    untilMs: nowMs + leaseMs,
  };
  records.set(replica, own);
  const others = records.size === 1 ? [] : [...records].filter(([id]) => id !== replica);
  const othersHeld = others.reduce((sum, [, { heldMicroHz }]) => sum + heldMicroHz, 0);
  const room = claim.ceilingMicroHz - othersHeld;
  const target = targetMicroHz(records, replica, claim.ceilingMicroHz);
  const { heldMicroHz: held } = own;
  const granted = target > held ? Math.max(held, Math.min(target, room)) : target;
  if (granted > held) records.set(replica, { ...own, heldMicroHz: granted });
  const elsewhere = claim.crowds.map(({ identity }) => {
    return { identity, count: countOf(identity, others) };
  });
  return { rateMicroHz: granted, elsewhere };
}

/** How many Envoys of an identity these replicas have. */
function countOf(
  wanted: string,
  records: readonly (readonly [replica: string, record: LeaseRecord])[],
): number {
  let sum = 0;
  for (const [, { crowds }] of records) {
    for (const { identity, count } of crowds) if (identity === wanted) sum += count;
  }
  return sum;
}

function dropEnded(records: LeaseRecords, nowMs: number): void {
  for (const [replica, record] of records) {
    const untilMs = Math.min(record.untilMs, nowMs + record.leaseMs);
    if (record.untilMs <= nowMs) records.delete(replica);
    else if (untilMs < record.untilMs) records.set(replica, { ...record, untilMs });
  }
}

interface Part {
  readonly replica: string;
  readonly demand: number;
  readonly weight: number;
}

/**
 * A replica's fair part of the ceiling: max-min fair by weight over what the satisfied and what the
 * hungry holders of each replica want; what nobody wants is spread by the weight of all.
 *
 * Example: 100 between one that wants 20 and one that wants 200, of equal weight: 20 and 80.
 */
function targetMicroHz(records: LeaseRecords, replica: string, ceilingMicroHz: number): number {
  const mine = records.get(replica);
  const ownWeight = mine === undefined ? 0 : mine.metWeight + mine.hungryWeight;
  if (records.size === 1 && ownWeight > 0) return ceilingMicroHz;
  const parts = [...records].flatMap(([id, record]) => partsOf(id, record)).sort(bySatisfaction);
  let left = ceilingMicroHz;
  let weight = parts.reduce((sum, part) => sum + part.weight, 0);
  let own = 0;
  for (const part of parts) {
    const given = Math.min(part.demand, Math.floor((left * part.weight) / weight));
    left -= given;
    weight -= part.weight;
    if (part.replica === replica) own += given;
  }
  let allWeight = 0;
  for (const record of records.values()) allWeight += record.metWeight + record.hungryWeight;
  return allWeight === 0 ? own : own + Math.floor((left * ownWeight) / allWeight);
}

function partsOf(replica: string, record: LeaseRecord): readonly Part[] {
  const parts = [
    { replica, demand: record.metMicroHz, weight: record.metWeight },
    { replica, demand: record.hungryMicroHz, weight: record.hungryWeight },
  ];
  return parts.filter(({ demand, weight }) => demand > 0 && weight > 0);
}

/** Who is satisfied first as the water rises; among equals by name, so that all see one order. */
function bySatisfaction(a: Part, b: Part): number {
  const difference = a.demand / a.weight - b.demand / b.weight;
  if (difference !== 0) return difference;
  if (a.replica !== b.replica) return a.replica < b.replica ? -1 : 1;
  return a.demand - b.demand;
}
