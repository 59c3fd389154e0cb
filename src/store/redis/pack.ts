import { type Bucket, type Charge, levelUnitsMax } from "../../core/bucket.js";
import { ServiceError } from "../../core/errors.js";
import type { ChargeResult } from "../../core/gcra.js";
import type { LimitKey, Role } from "../../core/limit.js";
import type { StoreOutcome, StoreRequest } from "../limit-store.js";

/** A batch as the take script reads it. */
export interface PackedBatch {
  /** Each distinct key once, in the order of first use; without the store's prefix. */
  readonly keys: readonly LimitKey[];
  /**
   * Little-endian, unaligned. A request: count of charges (uint16), multiplicity (uint32). A
   * charge: position of its key from 1 (uint16), flags (uint8), hits (uint32), burst (uint32),
   * period in us (double), cost (double); with the windows' flag, where they start, end and end
   * next in us (double each).
   */
  readonly bytes: Buffer;
}

/** What the take script answered. */
export interface UnpackedReply {
  readonly outcomes: readonly StoreOutcome[];
  /** Values found under our keys that no version of us has written; each counted as absent. */
  readonly badBucketCount: number;
}

const requestBytes = 6;
const chargeBytes = 27;
const windowsBytes = 24;
/** A bucket as stored. */
const bucketBytes = 24;

const replyHeadBytes = 12;
const replyRequestBytes = 4;
const replyChargeBytes = 1 + bucketBytes;

/** Flags of a charge: the role in the lowest two bits, then one bit each. */
const roleBits: Readonly<Record<Role, number>> = { enforce: 0, shadow: 1, quota: 2, settle: 3 };
const refundBit = 4;
const peekExhaustedBit = 8;

/**
 * Stands on the first charge of a plain request: all of its charges enforce, cost something, give
 * nothing back, and are on keys of their own. The script has a shorter way for these.
 */
const plainBit = 16;

/** The limit counts in windows, which follow the charge. */
const windowsBit = 32;

/**
 * Packs a batch that `assertBatch` found good; what it did not check would be cut to size here.
 */
export function encodeBatch(batch: readonly StoreRequest[]): PackedBatch {
  const bytes = Buffer.allocUnsafe(packedBytes(batch));
  // Half the time that the methods of Buffer take, which check their arguments.
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const positions = new Map<LimitKey, number>();
  let at = 0;
  for (const { charges, multiplicity } of batch) {
    view.setUint16(at, charges.length, true);
    view.setUint32(at + 2, multiplicity, true);
    at += requestBytes;
    const flagsAt = at + 2;
    let isPlain = true;
    for (let i = 0; i < charges.length; i += 1) {
      const charge = charges[i];
      if (charge === undefined) break;
      const position = positions.get(charge.key) ?? positions.size + 1;
      if (position > positions.size) positions.set(charge.key, position);
      else isPlain = isPlain && isFirstOnKey(charges, i);
      const flags = flagsOf(charge);
      isPlain = isPlain && charge.cost > 0 && (flags | peekExhaustedBit) === peekExhaustedBit;
      view.setUint16(at, position, true);
      view.setUint8(at + 2, flags);
      view.setUint32(at + 3, charge.hits, true);
      view.setUint32(at + 7, charge.burst, true);
      view.setFloat64(at + 11, charge.periodUs, true);
      view.setFloat64(at + 19, charge.cost, true);
      at += chargeBytes;
      if (charge.windows === undefined) continue;
      view.setFloat64(at, charge.windows.startUs, true);
      view.setFloat64(at + 8, charge.windows.endUs, true);
      view.setFloat64(at + 16, charge.windows.nextEndUs, true);
      at += windowsBytes;
    }
    if (isPlain) view.setUint8(flagsAt, view.getUint8(flagsAt) | plainBit);
  }
  return { keys: [...positions.keys()], bytes };
}

function packedBytes(batch: readonly StoreRequest[]): number {
  let bytes = batch.length * requestBytes;
  for (const { charges } of batch) {
    for (const { windows } of charges) {
      bytes += chargeBytes + (windows === undefined ? 0 : windowsBytes);
    }
  }
  return bytes;
}

/** Whether no charge before it in its request is on the same key. */
function isFirstOnKey(charges: readonly Charge[], index: number): boolean {
  const key = charges[index]?.key;
  for (let i = 0; i < index; i += 1) if (charges[i]?.key === key) return false;
  return true;
}

/**
 * Reads the take script's reply to a batch: store time in us (double), bad buckets (uint32), then a
 * request: how many were granted (uint32), and for each of its charges: over (uint8), its bucket
 * packed as it is stored. Throws STORE_PROTOCOL when it is anything else.
 */
export function decodeReply(reply: unknown, batch: readonly StoreRequest[]): UnpackedReply {
  let lengthBytes = replyHeadBytes;
  for (const { charges } of batch) {
    lengthBytes += replyRequestBytes + charges.length * replyChargeBytes;
  }
  if (!Buffer.isBuffer(reply) || reply.length !== lengthBytes) {
    throw new ServiceError("STORE_PROTOCOL");
  }
  const nowUs = reply.readDoubleLE(0);
  const outcomes: StoreOutcome[] = [];
  let at = replyHeadBytes;
  for (const { charges } of batch) {
    const grantedCount = reply.readUInt32LE(at);
    at += replyRequestBytes;
    const results: ChargeResult[] = [];
    for (let i = 0; i < charges.length; i += 1) {
      results.push({ isOver: reply[at] === 1, bucket: readBucket(reply, at + 1) });
      at += replyChargeBytes;
    }
    outcomes.push({ kind: "decided", result: { grantedCount, results, nowUs } });
  }
  return { outcomes, badBucketCount: reply.readUInt32LE(8) };
}

/**
 * A bucket as stored, in little-endian doubles: level, time in us, and when its key expires in ms,
 * which says nothing of the bucket. The version of all this lies in the key.
 */
export function decodeBucket(value: Buffer): Bucket | undefined {
  if (value.length !== bucketBytes) return undefined;
  const bucket = readBucket(value, 0);
  const isGood =
    isStorable(bucket.level) && bucket.level <= levelUnitsMax && isStorable(bucket.tUs);
  return isGood ? bucket : undefined;
}

function readBucket(bytes: Buffer, at: number): Bucket {
  return { level: bytes.readDoubleLE(at), tUs: bytes.readDoubleLE(at + 8) };
}

function isStorable(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function flagsOf(charge: Charge): number {
  const refund = charge.isRefund ? refundBit : 0;
  const windows = charge.windows === undefined ? 0 : windowsBit;
  return roleBits[charge.role] + refund + windows + (charge.peekExhausted ? peekExhaustedBit : 0);
}
