import { type Charge, retryAfterUs } from "../../core/limits/bucket.js";
import type { ChargeResult } from "../../core/limits/gcra.js";
import type { RegionalLimits } from "../../core/limits/lending.js";
import { type KeyRecords, refusalMsMax, type SeenBucket } from "./key-records.js";
import type { LimitCheck, PreparedQuery } from "./prepared-query.js";

/** Store results and their time. */
interface StoreAnswer {
  readonly results: readonly ChargeResult[];
  readonly nowUs: number;
  /** When the store call was sent and when it returned, monotonic. */
  readonly sentMs: number;
  readonly receivedMs: number;
}

/** A store request with the records that hold its results. */
interface OverLimitStoreResult {
  readonly asks: readonly LimitCheck[];
  readonly charges: readonly Charge[];
  readonly records: KeyRecords;
}

/** Records the state of each key of a request that the store denied. */
export function rememberAnswer(
  { asks, charges, records }: OverLimitStoreResult,
  { results, nowUs, sentMs, receivedMs }: StoreAnswer,
): void {
  for (let i = 0; i < asks.length; i += 1) {
    const charge = charges[i];
    const result = results[i];
    if (charge === undefined || result === undefined) continue;
    const ask = asks[i];
    const record = ask?.record ?? records.recordOf(charge.key);
    if (ask !== undefined) ask.record = record;
    record.seen = { bucket: result.bucket, nowUs, sentMs, receivedMs };
  }
}

/** Drops the records of keys that a request has refunded hits to. */
export function forgetRefunded(asks: readonly LimitCheck[], records: KeyRecords): void {
  for (const { charge, record } of asks) {
    if (!charge.isRefund) continue;
    for (const one of [record, records.find(charge.key)])
      if (one !== undefined) one.seen = undefined;
  }
}

/** Finds records that other queries have created since these checks were prepared. */
export function findRecords(asks: readonly LimitCheck[], records: KeyRecords): void {
  for (const ask of asks) ask.record ??= records.find(ask.charge.key);
}

/** Accepts only bucket states of store calls that are sent after `sinceMs`. */
export function believedSince(
  sinceMs: number,
  regions: Pick<RegionalLimits, "denialMsMax"> | undefined,
): Believed {
  return { sinceMs, globalMsMax: regions?.denialMsMax ?? refusalMsMax };
}

/** A denial from the cache. */
interface RememberedRefusal {
  /** One per check. Undefined if the key may not be over: others may have charged it since. */
  readonly results: readonly (ChargeResult | undefined)[];
  readonly nowUs: number;
  /** Whether the store has returned the state of every key within the last second. */
  readonly isWhole: boolean;
}

/** A call to evaluate: a `Decision`. */
interface OverLimitCacheCall {
  readonly prepared: Pick<PreparedQuery, "asks" | "isGlobal">;
  readonly charges: readonly Charge[];
}

/** How long states of buckets are used. */
export interface Believed {
  /** States of store calls sent up to this monotonic time are not used. */
  readonly sinceMs: number;
  /** Their maximum age if a limit of the request is divided among regions. */
  readonly globalMsMax: number;
}

/**
 * Returns the limits of a request that must still be over, judging by bucket states that the store
 * returned within the last second. Undefined if none is known to be over. A bucket may be fuller by
 * now, but never emptier than the drain of the limit's own rate allows. The exceptions are refunds
 * through other replicas and other limits on the same bucket. A state is therefore used for at most
 * one second, or a shorter time if a limit borrows from other regions. Only for requests that
 * charge nothing when denied.
 */
export function refuseFromMemory(
  { prepared: { asks, isGlobal }, charges }: OverLimitCacheCall,
  nowMs: number,
  { sinceMs, globalMsMax }: Believed,
): RememberedRefusal | undefined {
  const ageMsMax = isGlobal ? globalMsMax : refusalMsMax;
  const believedMs = Math.max(sinceMs, nowMs - ageMsMax);
  let isDenied = false;
  let isWhole = true;
  let nowUs = 0;
  for (let i = 0; i < asks.length; i += 1) {
    const seen = asks[i]?.record?.seen;
    if (seen === undefined || seen.sentMs <= believedMs) {
      isWhole = false;
      continue;
    }
    if (isOver(seen, charges[i], nowMs)) isDenied = true;
    nowUs = Math.max(nowUs, storeTimeUs(seen, nowMs));
  }
  if (!isDenied) return undefined;
  const results = asks.map(({ record }, i): ChargeResult | undefined => {
    const seen = record?.seen;
    if (seen === undefined || seen.sentMs <= believedMs) return undefined;
    if (!isOver(seen, charges[i], nowMs)) return undefined;
    // Clocks of several stores may differ.
    const { level, tUs } = seen.bucket;
    return { isOver: true, bucket: { level, tUs: tUs + nowUs - storeTimeUs(seen, nowMs) } };
  });
  return { results, nowUs, isWhole };
}

/** A lower bound of the current time on the clock of that store. */
function storeTimeUs({ nowUs, receivedMs }: SeenBucket, nowMs: number): number {
  return nowUs + Math.floor((nowMs - receivedMs) * 1_000);
}

/** Whether a charge cannot fit yet, even if the store evaluated it as early as possible. */
function isOver(seen: SeenBucket, charge: Charge | undefined, nowMs: number): boolean {
  if (charge === undefined) return false;
  const latestUs = seen.nowUs + Math.ceil((nowMs - seen.sentMs) * 1_000);
  return retryAfterUs(charge, seen.bucket, latestUs) !== 0;
}
