import type { Charge } from "../../src/core/limits/bucket.js";
import type { Compensation } from "../../src/core/limits/compensation.js";
import { type Denial, type LimitKey, settledRole } from "../../src/core/limits/limit.js";
import type { Windows } from "../../src/core/limits/window.js";
import type { StoreRequest, StoreResult } from "../../src/store/limit-store.js";
import type { GivenBack } from "../../src/store/split/split-part.js";

/** When a charge denies, by the lowest two bits of its flags. */
const denials: readonly Denial[] = ["enforce", "shadow", "quota"];

/** Undoes `encodeBatch`, as the take script does. */
export function decodeBatch(keys: readonly LimitKey[], bytes: Buffer): readonly StoreRequest[] {
  const packed = new PackedNumbers(bytes);
  const requests: StoreRequest[] = [];
  while (!packed.isOver) {
    const chargeCount = packed.uint16();
    const multiplicity = packed.uint32();
    const runLength = packed.uint16();
    const place = packed.peekUint16();
    const charges = Array.from({ length: chargeCount }, () => decodeCharge(keys, packed));
    requests.push({ charges, multiplicity });
    if (charges.length === 0) throw new Error("a bad run");
    for (let i = 1; i < runLength; i += 1) {
      // Of one charge the next keys follow; of several, their positions do.
      const placeOf = (): number => (chargeCount === 1 ? place + i : packed.uint16());
      const others = charges.map((charge) => ({ ...charge, key: keyAt(keys, placeOf()) }));
      requests.push({ charges: others, multiplicity });
    }
  }
  return requests;
}

function decodeCharge(keys: readonly LimitKey[], packed: PackedNumbers): Charge {
  const key = keyAt(keys, packed.uint16());
  const flags = packed.uint8();
  const hits = packed.uint32();
  // With what drains during a delay: a charge that may be held says no more of it.
  const burst = packed.double();
  const periodUs = packed.double();
  const cost = packed.double();
  const denial = denials[flags & 3] ?? "enforce";
  return {
    key,
    hits,
    burst,
    periodUs,
    cost,
    role: (flags & 64) === 0 ? denial : settledRole(denial),
    isRefund: (flags & 4) !== 0,
    peekExhausted: (flags & 8) !== 0,
    ...((flags & 32) === 0 ? {} : { windows: packed.windows() }),
    ...((flags & 128) === 0 ? {} : { lastKey: keyAt(keys, packed.uint16()) }),
  };
}

/** What the take script replies; all results are of one time. */
export function encodeReply(results: readonly StoreResult[]): Buffer {
  const numbers = [results[0]?.nowUs ?? 0, 0];
  for (const { grantedCount, results: ofCharges } of results) {
    numbers.push(grantedCount);
    for (const { isOver, bucket } of ofCharges) {
      numbers.push(isOver ? -1 - bucket.level : bucket.level, bucket.tUs);
    }
  }
  return packDoubles(numbers);
}

/** Undoes `encodeCompensations`, as the give-back script does. */
export function decodeCompensations(
  keys: readonly LimitKey[],
  bytes: Buffer,
): readonly Compensation[] {
  const packed = new PackedNumbers(bytes);
  const compensations: Compensation[] = [];
  while (!packed.isOver) {
    const key = keyAt(keys, packed.uint16());
    const hits = packed.uint32();
    const periodUs = packed.double();
    const cost = packed.double();
    const chargedUs = packed.double();
    const windows = packed.windows();
    const isWindowed = windows.nextEndUs > 0;
    compensations.push({
      key,
      hits,
      periodUs,
      cost,
      chargedUs,
      ...(isWindowed ? { windows } : {}),
    });
  }
  return compensations;
}

/** What the give-back script replies. */
export function encodeGivenBack({ buckets, nowUs }: GivenBack): Buffer {
  const numbers = [nowUs, ...buckets.flatMap(({ level, tUs }) => [level, tUs])];
  return packDoubles(numbers);
}

function packDoubles(numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 8);
  for (const [i, number] of numbers.entries()) bytes.writeDoubleLE(number, i * 8);
  return bytes;
}

/** Reads little-endian numbers one after the other. */
class PackedNumbers {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isOver(): boolean {
    return this.#at >= this.#bytes.length;
  }

  uint8(): number {
    return this.#bytes.readUInt8(this.#pass(1));
  }

  uint16(): number {
    return this.#bytes.readUInt16LE(this.#pass(2));
  }

  peekUint16(): number {
    return this.#bytes.readUInt16LE(this.#at);
  }

  uint32(): number {
    return this.#bytes.readUInt32LE(this.#pass(4));
  }

  double(): number {
    return this.#bytes.readDoubleLE(this.#pass(8));
  }

  windows(): Windows {
    return { startUs: this.double(), endUs: this.double(), nextEndUs: this.double() };
  }

  #pass(byteCount: number): number {
    this.#at += byteCount;
    return this.#at - byteCount;
  }
}

function keyAt(keys: readonly LimitKey[], position: number): LimitKey {
  const key = keys[position - 1];
  if (key === undefined) throw new Error(`there is no key ${position}`);
  return key;
}
