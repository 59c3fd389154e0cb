import { type Charge, retryAfterUs } from "../../core/limits/bucket.js";
import type { ChargeResult } from "../../core/limits/gcra.js";
import { type KeyRecords, refusalMsMax, type SeenBucket } from "./key-records.js";
import type { LimitCheck } from "./prepared-query.js";

/** Results as the store gave them, and when. */
interface StoreAnswer {
  readonly results: readonly ChargeResult[];
  readonly nowUs: number;
  /** When the store was asked and when it had answered, monotonic. */
  readonly sentMs: number;
  readonly receivedMs: number;
}

/** What the store was asked, and where what it said is kept. */
interface OverLimitStoreResult {
  readonly asks: readonly LimitCheck[];
  readonly charges: readonly Charge[];
  readonly records: KeyRecords;
}

/** Keeps what the store said of each key of a request that it refused. */
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

/** Forgets what is remembered of the keys to which a request has given hits back. */
export function forgetRefunded(asks: readonly LimitCheck[], records: KeyRecords): void {
  for (const { charge, record } of asks) {
    if (!charge.isRefund) continue;
    for (const one of [record, records.find(charge.key)])
      if (one !== undefined) one.seen = undefined;
  }
}

/** Finds what was remembered of keys since the asks were made, by calls that asked otherwise. */
export function findRecords(asks: readonly LimitCheck[], records: KeyRecords): void {
  for (const ask of asks) ask.record ??= records.find(ask.charge.key);
}

/** A refusal without the store. */
interface RememberedRefusal {
  /** One an ask. Undefined where it is not known to be over: others may have charged it since. */
  readonly results: readonly (ChargeResult | undefined)[];
  readonly nowUs: number;
  /** Whether the store has said of every key how it was, within the last second. */
  readonly isWhole: boolean;
}

/** A call that asks: a `Decision`. */
interface OverLimitCacheCall {
  readonly prepared: { readonly asks: readonly LimitCheck[] };
  readonly charges: readonly Charge[];
}

/**
 * Which of a request's limits the store would find over now, from what it said of their buckets
 * within the last second; undefined when none is known to be. A bucket may be fuller by now, never
 * emptier than what drained at the limit's own rate: but for refunds of other replicas, and for
 * other limits on the same bucket, which is why a second is the most. Only for plain requests: they
 * charge nothing when denied.
 *
 * @param sinceMs what was asked of the store by then is not believed, monotonic
 */
export function refuseFromMemory(
  { prepared: { asks }, charges }: OverLimitCacheCall,
  nowMs: number,
  sinceMs: number,
): RememberedRefusal | undefined {
  const believedMs = Math.max(sinceMs, nowMs - refusalMsMax);
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
    // The clocks of several stores may differ.
    const { level, tUs } = seen.bucket;
    return { isOver: true, bucket: { level, tUs: tUs + nowUs - storeTimeUs(seen, nowMs) } };
  });
  return { results, nowUs, isWhole };
}

/** The time of the store that said it, no later than it is. */
function storeTimeUs({ nowUs, receivedMs }: SeenBucket, nowMs: number): number {
  return nowUs + Math.floor((nowMs - receivedMs) * 1_000);
}

/** Whether a charge cannot fit yet, even if the store has looked as soon as it was asked. */
function isOver(seen: SeenBucket, charge: Charge | undefined, nowMs: number): boolean {
  if (charge === undefined) return false;
  const latestUs = seen.nowUs + Math.ceil((nowMs - seen.sentMs) * 1_000);
  return retryAfterUs(charge, seen.bucket, latestUs) !== 0;
}
