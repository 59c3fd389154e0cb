import { type Charge, retryAfterUs } from "../core/bucket.js";
import type { ChargeResult } from "../core/gcra.js";
import {
  type KeyRecord,
  type KeyRecords,
  keyRefusalsMax,
  type Refusal,
  refusalMsMax,
} from "./key-records.js";
import type { PreparedAsk } from "./prepared-query.js";

/** Results as the store gave them, and when. */
export interface StoreAnswer {
  readonly results: readonly ChargeResult[];
  readonly nowUs: number;
  /** When the store was asked and when it had answered, monotonic. */
  readonly sentMs: number;
  readonly receivedMs: number;
}

/** What the store was asked, and where what it said is kept. */
export interface AskedOfStore {
  readonly asks: readonly PreparedAsk[];
  readonly charges: readonly Charge[];
  readonly records: KeyRecords;
}

/** Keeps what the store said of each key, and until when it makes asking again useless. */
export function rememberAnswer(
  { asks, charges, records }: AskedOfStore,
  { results, nowUs, sentMs, receivedMs }: StoreAnswer,
): void {
  for (let i = 0; i < asks.length; i += 1) {
    const charge = charges[i];
    const result = results[i];
    if (charge === undefined || result === undefined) continue;
    const ask = asks[i];
    const record = ask?.record ?? records.recordOf(charge.key);
    if (ask !== undefined) ask.record = record;
    record.seen = { bucket: result.bucket, nowUs, receivedMs };
    if (!result.isOver) continue;
    const waitUs = retryAfterUs(charge, result.bucket, nowUs) ?? Number.POSITIVE_INFINITY;
    // Counted from before the store's own time, so that it ends no later than the wait itself.
    const untilMs = sentMs + Math.min(waitUs / 1_000, refusalMsMax);
    record.refusals = withRefusal(record, { cost: charge.cost, untilMs }, receivedMs);
  }
}

/**
 * The refusals of a key with one more. A cheap ask is refused for a shorter time than a dear one,
 * so neither may push out the other; what the new one covers leaves, and what is over.
 */
function withRefusal({ refusals }: KeyRecord, told: Refusal, nowMs: number): readonly Refusal[] {
  const kept = refusals.filter(
    ({ cost, untilMs }) => untilMs > nowMs && (cost < told.cost || untilMs > told.untilMs),
  );
  return [...kept, told].slice(-keyRefusalsMax);
}

/** Finds what was remembered of keys since the asks were made, by calls that asked otherwise. */
export function findRecords(asks: readonly PreparedAsk[], records: KeyRecords): void {
  for (const ask of asks) ask.record ??= records.find(ask.charge.key);
}

/**
 * What the store would say now of a request that holds a key which is over, from what it said last;
 * undefined when it has to be asked. Only for repeatable requests: they charge nothing when denied.
 */
export function refuseFromMemory(
  asks: readonly PreparedAsk[],
  charges: readonly Charge[],
  nowMs: number,
): { readonly results: readonly ChargeResult[]; readonly nowUs: number } | undefined {
  let isDenied = false;
  let nowUs = 0;
  for (let i = 0; i < asks.length; i += 1) {
    const record = asks[i]?.record;
    if (record === undefined) continue;
    if (isRefused(record, charges[i]?.cost ?? 0, nowMs)) isDenied = true;
    const { seen } = record;
    if (seen === undefined) continue;
    nowUs = Math.max(nowUs, seen.nowUs + Math.floor((nowMs - seen.receivedMs) * 1_000));
  }
  if (!isDenied) return undefined;
  const results = asks.map(({ record }, i): ChargeResult => {
    const isOver = isRefused(record, charges[i]?.cost ?? 0, nowMs);
    return { isOver, bucket: record?.seen?.bucket ?? { level: 0, tUs: nowUs } };
  });
  return { results, nowUs };
}

function isRefused(record: KeyRecord | undefined, cost: number, nowMs: number): boolean {
  if (record === undefined) return false;
  for (const refusal of record.refusals) {
    if (nowMs < refusal.untilMs && cost >= refusal.cost) return true;
  }
  return false;
}
