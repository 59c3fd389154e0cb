import type { QuotaClaim, QuotaCrowd, QuotaLease } from "../../core/quota/quota.js";

/** The record of one replica's part of a pool. Rates in micro-hits per second. */
interface LeaseRecord {
  /** Increases with each claim of the replica. */
  readonly beat: number;
  /** Maximum rate that its Envoys may have in force. Only the replica itself lowers it. */
  readonly heldMicroHz: number;
  readonly metMicroHz: number;
  readonly metWeight: number;
  readonly hungryMicroHz: number;
  readonly hungryWeight: number;
  readonly crowds: readonly QuotaCrowd[];
  /** Claimed duration, and its end on the clock of the table. */
  readonly leaseMs: number;
  readonly untilMs: number;
}

/** One replica's claim on a pool. */
interface LeaseClaim {
  readonly replica: string;
  readonly beat: number;
  readonly claim: QuotaClaim;
  readonly leaseMs: number;
}

/** The records of one pool, by replica. */
export type LeaseRecords = Map<string, LeaseRecord>;

/**
 * Records a claim and returns what the replica may assign from now on; undefined for a claim that
 * was overtaken by a later one. Shared stores implement the same algorithm where their data is.
 *
 * What keeps the sum within the ceiling: A grant is recorded before it is answered. Only the
 * replica itself lowers its record, so a replica that is asked to give back keeps what its Envoys
 * may still use. An additional grant is at most what the others' records leave of the ceiling.
 *
 * For each claimed identity, also returns how many Envoys of it the other replicas have.
 *
 * A lease that ends later than its duration from now results from a clock that stepped back. It is
 * shortened to its duration from now.
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

/** Returns how many Envoys of an identity these replicas have. */
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
 * Returns a replica's fair part of the ceiling: max-min fair by weight over the demands of the
 * satisfied and of the hungry holders of each replica. What is left is divided by total weight.
 *
 * Example: a ceiling of 100 and demands of 20 and 200 with equal weight result in 20 and 80.
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

/** Orders parts by demand per weight, equal ones by replica, so that all see the same order. */
function bySatisfaction(a: Part, b: Part): number {
  const difference = a.demand / a.weight - b.demand / b.weight;
  if (difference !== 0) return difference;
  if (a.replica !== b.replica) return a.replica < b.replica ? -1 : 1;
  return a.demand - b.demand;
}
