import type { Compensation } from "../../src/core/compensation.js";
import type { Charge } from "../../src/core/gcra.js";
import type { LimitKey, Role } from "../../src/core/limit.js";
import type { StoreRequest, StoreResult } from "../../src/store/limit-store.js";
import type { GivenBack } from "../../src/store/split-part.js";

/** Roles by the lowest two bits of a charge's flags. */
const roles: readonly Role[] = ["enforce", "shadow", "quota", "settle"];

/** Undoes `encodeBatch`, as the take script does. */
export function decodeBatch(keys: readonly LimitKey[], bytes: Buffer): readonly StoreRequest[] {
  const requests: StoreRequest[] = [];
  let at = 0;
  while (at < bytes.length) {
    const chargeCount = bytes.readUInt16LE(at);
    const multiplicity = bytes.readUInt32LE(at + 2);
    at += 6;
    const charges = Array.from({ length: chargeCount }, (_, i): Charge => {
      return decodeCharge(keys, bytes.subarray(at + i * 27));
    });
    at += chargeCount * 27;
    requests.push({ charges, multiplicity });
  }
  return requests;
}

function decodeCharge(keys: readonly LimitKey[], bytes: Buffer): Charge {
  const flags = bytes.readUInt8(2);
  return {
    key: keyAt(keys, bytes.readUInt16LE(0)),
    hits: bytes.readUInt32LE(3),
    burst: bytes.readUInt32LE(7),
    periodUs: bytes.readDoubleLE(11),
    cost: bytes.readDoubleLE(19),
    role: roles[flags & 3] ?? "enforce",
    isRefund: (flags & 4) !== 0,
    peekExhausted: (flags & 8) !== 0,
  };
}

/** What the take script replies; all results are of one time. */
export function encodeReply(results: readonly StoreResult[]): Buffer {
  const head = Buffer.alloc(12);
  head.writeDoubleLE(results[0]?.nowUs ?? 0, 0);
  const parts = results.map(({ grantedCount, results: ofCharges }) => {
    const part = Buffer.alloc(4 + ofCharges.length * 25);
    part.writeUInt32LE(grantedCount, 0);
    ofCharges.forEach(({ isOver, bucket }, i) => {
      // What follows the time, of the key's expiry, nobody reads.
      const at = 4 + i * 25;
      part.writeUInt8(isOver ? 1 : 0, at);
      part.writeDoubleLE(bucket.level, at + 1);
      part.writeDoubleLE(bucket.tUs, at + 9);
    });
    return part;
  });
  return Buffer.concat([head, ...parts]);
}

/** Undoes `encodeCompensations`, as the give-back script does. */
export function decodeCompensations(
  keys: readonly LimitKey[],
  bytes: Buffer,
): readonly Compensation[] {
  return Array.from({ length: bytes.length / 30 }, (_, i): Compensation => {
    const at = i * 30;
    return {
      key: keyAt(keys, bytes.readUInt16LE(at)),
      hits: bytes.readUInt32LE(at + 2),
      periodUs: bytes.readDoubleLE(at + 6),
      cost: bytes.readDoubleLE(at + 14),
      chargedUs: bytes.readDoubleLE(at + 22),
    };
  });
}

/** What the give-back script replies. */
export function encodeGivenBack({ buckets, nowUs }: GivenBack): Buffer {
  const numbers = [nowUs, ...buckets.flatMap(({ level, tUs }) => [level, tUs])];
  const bytes = Buffer.alloc(numbers.length * 8);
  for (const [i, number] of numbers.entries()) bytes.writeDoubleLE(number, i * 8);
  return bytes;
}

function keyAt(keys: readonly LimitKey[], position: number): LimitKey {
  const key = keys[position - 1];
  if (key === undefined) throw new Error(`there is no key ${position}`);
  return key;
}
