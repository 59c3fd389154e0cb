import { ServiceError } from "../../../core/base/errors.js";
import {
  type Bucket,
  type Charge,
  capacityUnits,
  levelUnitsMax,
  unitsPerHit,
} from "../../../core/limits/bucket.js";
import type { ChargeResult } from "../../../core/limits/gcra.js";
import { type Denial, denialOf, isSettled, type LimitKey } from "../../../core/limits/limit.js";
import type { StoreOutcome, StoreRequest } from "../../limit-store.js";

/** A batch in the take script's format. */
interface PackedBatch {
  /** Each distinct key once, in the order of first use, without the store's prefix. */
  readonly keys: readonly LimitKey[];
  /**
   * Little-endian, unaligned. Per request: number of charges (uint16), multiplicity (uint32), and
   * length of the run (uint16): the request itself and, if all of its charges have different keys,
   * the following requests that differ from it only in their keys. With one charge, their keys are
   * the next positions; with several charges, the positions of each such request's keys (uint16
   * each) follow the charges. Per charge: position of its key from 1 (uint16), flags (uint8), hits
   * (uint32), capacity in hits (double), period in us (double), cost (double); with the windows'
   * flag, their start, end and next end in us (double each); with the flag of a carried limit, the
   * position of its `lastKey` (uint16).
   */
  readonly bytes: Buffer;
}

/** The take script's reply. */
interface UnpackedReply {
  readonly outcomes: readonly StoreOutcome[];
  /** Values under Headgate's keys that no version of it has written. Each counts as absent. */
  readonly badBucketCount: number;
}

const requestBytes = 8;
const chargeBytes = 31;
const windowsBytes = 24;
const keyBytes = 2;
/** Length of a stored bucket. */
const bucketBytes = 24;

const replyHeadBytes = 16;
const replyRequestBytes = 8;
const replyChargeBytes = 16;

/** Flags of a charge: its denial in the lowest two bits, then one bit each. */
const denialBits: Readonly<Record<Denial, number>> = { enforce: 0, shadow: 1, quota: 2 };
const refundBit = 4;
const peekExhaustedBit = 8;

/**
 * Set on the first charge of a request whose charges all have different keys and limits from the
 * policy. The script has a shorter path for these.
 */
const ownKeysBit = 16;

/** The limit uses windows, which follow the charge. */
const windowsBit = 32;

/** The charge is stored whatever the decision is. */
const settledBit = 64;

/** The request carried the limit. The position of its `lastKey` follows. */
const carriedBit = 128;

/**
 * Packs a batch that has passed `assertBatch`. Values that it did not check would be truncated.
 */
export function encodeBatch(batch: readonly StoreRequest[]): PackedBatch {
  const packer = new BatchPacker(packedBytesMax(batch));
  for (const request of batch) packer.pack(request);
  return packer.finish();
}

/** The run of requests with different keys that is being packed. */
interface Run {
  /** Offset of its count in the packed bytes. */
  readonly countAt: number;
  readonly charges: readonly Charge[];
  readonly multiplicity: number;
  count: number;
}

/** Packs the requests of a batch. */
class BatchPacker {
  readonly #bytes: Buffer;
  readonly #view: DataView;
  readonly #positions = new Map<LimitKey, number>();
  #at = 0;
  #run: Run | undefined;

  constructor(bytesMax: number) {
    this.#bytes = Buffer.allocUnsafe(bytesMax);
    // Takes half the time of the methods of Buffer, which check their arguments.
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, bytesMax);
  }

  pack(request: StoreRequest): void {
    if (this.#joinsRun(request)) return;
    const { charges, multiplicity } = request;
    const view = this.#view;
    const startAt = this.#at;
    view.setUint16(startAt, charges.length, true);
    view.setUint32(startAt + 2, multiplicity, true);
    view.setUint16(startAt + 6, 1, true);
    this.#at = startAt + requestBytes;
    let hasOwnKeys = true;
    for (let i = 0; i < charges.length; i += 1) {
      if (!this.#packCharge(charges, i)) hasOwnKeys = false;
    }
    this.#run = undefined;
    if (!hasOwnKeys) return;
    const flagsAt = startAt + requestBytes + 2;
    view.setUint8(flagsAt, view.getUint8(flagsAt) | ownKeysBit);
    // A run with one charge continues at the next position, so it must start at the last one.
    const isLast = view.getUint16(startAt + requestBytes, true) === this.#positions.size;
    if (charges.length === 1 && !isLast) return;
    this.#run = { countAt: startAt + 6, charges, multiplicity, count: 1 };
  }

  finish(): PackedBatch {
    return { keys: [...this.#positions.keys()], bytes: this.#bytes.subarray(0, this.#at) };
  }

  /** Adds a request to the current run. Returns false if it must be packed separately. */
  #joinsRun({ charges, multiplicity }: StoreRequest): boolean {
    const run = this.#run;
    if (run === undefined || charges.length !== run.charges.length) return false;
    if (multiplicity !== run.multiplicity) return false;
    for (let i = 0; i < charges.length; i += 1) {
      const charge = charges[i];
      const first = run.charges[i];
      if (charge === undefined || first === undefined || !isAlike(charge, first)) return false;
    }
    if (!(charges.length === 1 ? this.#hasNext(charges) : this.#packKeys(charges))) return false;
    run.count += 1;
    this.#view.setUint16(run.countAt, run.count, true);
    return true;
  }

  /** Gives the key of a single charge the next position. Returns false if it already has one. */
  #hasNext([charge]: readonly Charge[]): boolean {
    if (charge === undefined || this.#positions.has(charge.key)) return false;
    this.#positions.set(charge.key, this.#positions.size + 1);
    return true;
  }

  /** Packs the positions of a request's keys. Returns false if two charges have the same key. */
  #packKeys(charges: readonly Charge[]): boolean {
    for (let i = 1; i < charges.length; i += 1) if (!isFirstOnKey(charges, i)) return false;
    for (const { key } of charges) {
      this.#view.setUint16(this.#at, this.#positionOf(key), true);
      this.#at += keyBytes;
    }
    return true;
  }

  #positionOf(key: LimitKey): number {
    const known = this.#positions.get(key);
    if (known !== undefined) return known;
    this.#positions.set(key, this.#positions.size + 1);
    return this.#positions.size;
  }

  /** Packs one charge. Returns false for a key of an earlier charge, or for a carried limit. */
  #packCharge(charges: readonly Charge[], index: number): boolean {
    const charge = charges[index];
    if (charge === undefined) return false;
    const { key, hits, periodUs, cost, windows, lastKey } = charge;
    const view = this.#view;
    const at = this.#at;
    view.setUint16(at, this.#positionOf(key), true);
    view.setUint8(at + 2, flagsOf(charge));
    view.setUint32(at + 3, hits, true);
    view.setFloat64(at + 7, capacityUnits(charge) / unitsPerHit, true);
    view.setFloat64(at + 15, periodUs, true);
    view.setFloat64(at + 23, cost, true);
    this.#at = at + chargeBytes;
    if (windows !== undefined) {
      view.setFloat64(this.#at, windows.startUs, true);
      view.setFloat64(this.#at + 8, windows.endUs, true);
      view.setFloat64(this.#at + 16, windows.nextEndUs, true);
      this.#at += windowsBytes;
    }
    if (lastKey !== undefined) {
      view.setUint16(this.#at, this.#positionOf(lastKey), true);
      this.#at += keyBytes;
    }
    return lastKey === undefined && isFirstOnKey(charges, index);
  }
}

/** Reports whether two charges differ only in their keys. */
function isAlike(one: Charge, other: Charge): boolean {
  return (
    one.hits === other.hits &&
    one.burst === other.burst &&
    one.periodUs === other.periodUs &&
    one.cost === other.cost &&
    one.role === other.role &&
    one.isRefund === other.isRefund &&
    one.peekExhausted === other.peekExhausted &&
    one.windows === other.windows &&
    one.delayUs === other.delayUs &&
    one.lastKey === other.lastKey
  );
}

function packedBytesMax(batch: readonly StoreRequest[]): number {
  let bytes = batch.length * requestBytes;
  for (const { charges } of batch) {
    for (const { windows, lastKey } of charges) {
      bytes += chargeBytes + (windows === undefined ? 0 : windowsBytes);
      if (lastKey !== undefined) bytes += keyBytes;
    }
  }
  return bytes;
}

/** Reports whether no earlier charge of the request has the same key. */
function isFirstOnKey(charges: readonly Charge[], index: number): boolean {
  const key = charges[index]?.key;
  for (let i = 0; i < index; i += 1) if (charges[i]?.key === key) return false;
  return true;
}

/**
 * Reads the take script's reply to a batch. It consists of doubles: store time in us, number of bad
 * buckets, then per request: how many were granted, and for each of its charges the level of its
 * bucket, or -1 minus that level if the charge is over, and the time of the bucket. Throws
 * STORE_PROTOCOL for anything else.
 */
export function decodeReply(reply: unknown, batch: readonly StoreRequest[]): UnpackedReply {
  let lengthBytes = replyHeadBytes;
  for (const { charges } of batch) {
    lengthBytes += replyRequestBytes + charges.length * replyChargeBytes;
  }
  if (!Buffer.isBuffer(reply) || reply.length !== lengthBytes) {
    throw new ServiceError("STORE_PROTOCOL");
  }
  const view = new DataView(reply.buffer, reply.byteOffset, reply.length);
  const nowUs = view.getFloat64(0, true);
  const outcomes: StoreOutcome[] = [];
  let at = replyHeadBytes;
  for (const { charges } of batch) {
    const grantedCount = view.getFloat64(at, true);
    at += replyRequestBytes;
    const results: ChargeResult[] = [];
    for (let i = 0; i < charges.length; i += 1) {
      const shown = view.getFloat64(at, true);
      const isOver = shown < 0;
      const level = isOver ? -1 - shown : shown;
      results.push({ isOver, bucket: { level, tUs: view.getFloat64(at + 8, true) } });
      at += replyChargeBytes;
    }
    outcomes.push({ kind: "decided", result: { grantedCount, results, nowUs } });
  }
  return { outcomes, badBucketCount: view.getFloat64(8, true) };
}

/**
 * Decodes a stored bucket, in little-endian doubles: level, time in us, and the expiry of its key
 * in ms, which is not part of the bucket. The key contains the version of this format.
 */
export function decodeBucket(value: Buffer): Bucket | undefined {
  if (value.length !== bucketBytes) return undefined;
  const bucket = { level: value.readDoubleLE(0), tUs: value.readDoubleLE(8) };
  const isGood =
    isStorable(bucket.level) && bucket.level <= levelUnitsMax && isStorable(bucket.tUs);
  return isGood ? bucket : undefined;
}

function isStorable(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function flagsOf(charge: Charge): number {
  const refund = charge.isRefund ? refundBit : 0;
  const windows = charge.windows === undefined ? 0 : windowsBit;
  const settled = isSettled(charge.role) ? settledBit : 0;
  const carried = charge.lastKey === undefined ? 0 : carriedBit;
  const exhausted = charge.peekExhausted ? peekExhaustedBit : 0;
  const flags = refund + exhausted + windows + settled + carried;
  return denialBits[denialOf(charge.role)] + flags;
}
