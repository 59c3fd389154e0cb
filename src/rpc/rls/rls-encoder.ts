import type { LimitUnit } from "../../core/limits/limit.js";
import {
  type CurrentLimit,
  type DescriptorVerdict,
  headerSeconds,
  type Verdict,
} from "../../core/limits/verdict.js";

/**
 * Encodes RateLimitResponse by hand. Responses differ in a few numbers only, and a general encoder
 * costs more than the whole decision (5 us instead of 0.3 us for a response with one status).
 * Property tests compare the result with protobuf-es.
 *
 * Source: protobuf.dev/programming-guides/encoding; rls.proto and duration.proto for the fields.
 */
export class RateLimitResponseEncoder {
  readonly #limits = new WeakMap<CurrentLimit, Uint8Array>();
  /** The limit at each position of the last response, and its bytes: the next is mostly equal. */
  readonly #placed: PlacedLimit[] = [];
  /** Contains responses side by side. No byte is written twice. */
  #slab = Buffer.alloc(0);
  #length = 0;
  #last: LastAnswer | undefined;

  /**
   * Returns the response to a verdict. Its bytes are not written again.
   *
   * @param tail more fields, as bytes; callers pass the same object for the same fields
   */
  encode(verdict: Verdict, tail?: Uint8Array): Uint8Array {
    const { statuses } = verdict;
    if (statuses.length !== 1) return this.#encode(verdict, tail);
    // Denials stay the same for a second, so the response for a hot key is encoded once.
    const [status] = statuses;
    const last = this.#last;
    if (status !== undefined && last?.tail === tail && last?.isFor(status, verdict.isDenied)) {
      return last.bytes;
    }
    const bytes = this.#encode(verdict, tail);
    if (status?.isOver === true) {
      this.#last = new LastAnswer({ status, isDenied: verdict.isDenied, tail, bytes });
    }
    return bytes;
  }

  #encode({ isDenied, statuses }: Verdict, tail: Uint8Array | undefined): Uint8Array {
    let lengthMax = 2 + (tail?.length ?? 0);
    for (let i = 0; i < statuses.length; i += 1) {
      lengthMax += statusLengthMaxWithoutLimit + this.#limitAt(i, statuses[i]?.currentLimit).length;
    }
    if (this.#length + lengthMax > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(Math.max(slabBytes, lengthMax));
      this.#length = 0;
    }
    const start = this.#length;
    this.#slab[start] = tags.overallCode;
    this.#slab[start + 1] = isDenied ? codes.overLimit : codes.ok;
    this.#length += 2;
    for (let i = 0; i < statuses.length; i += 1) {
      const status = statuses[i];
      if (status !== undefined) this.#status(status, this.#limitAt(i, status.currentLimit));
    }
    if (tail !== undefined) {
      this.#slab.set(tail, this.#length);
      this.#length += tail.length;
    }
    return this.#slab.subarray(start, this.#length);
  }

  /** @param limit the encoded field of the status's limit; empty if it has no limit */
  #status(status: DescriptorVerdict, limit: Uint8Array): void {
    const { limitRemaining = 0, durationUntilResetUs } = status;
    const seconds = secondsOf(durationUntilResetUs);
    const secondsLength = seconds === undefined || seconds === 0 ? 0 : 1 + varintLength(seconds);
    const code = codeOf(status);
    const length =
      (code === codes.unknown ? 0 : 2) +
      limit.length +
      (limitRemaining === 0 ? 0 : 1 + varintLength(limitRemaining)) +
      (seconds === undefined ? 0 : 2 + secondsLength);
    const slab = this.#slab;
    let at = this.#length;
    slab[at] = tags.status;
    at = putVarint(slab, at + 1, length);
    if (code !== codes.unknown) {
      slab[at] = tags.statusCode;
      slab[at + 1] = code;
      at += 2;
    }
    // A call of `set` would cost more than copying these few bytes.
    for (let i = 0; i < limit.length; i += 1) slab[at + i] = limit[i] ?? 0;
    at += limit.length;
    if (limitRemaining !== 0) {
      slab[at] = tags.limitRemaining;
      at = putVarint(slab, at + 1, limitRemaining);
    }
    if (seconds !== undefined) {
      slab[at] = tags.durationUntilReset;
      slab[at + 1] = secondsLength;
      at += 2;
      if (secondsLength > 0) {
        slab[at] = tags.durationSeconds;
        at = putVarint(slab, at + 1, seconds);
      }
    }
    this.#length = at;
  }

  /** Returns the bytes of the limit at a position of the response. Empty if there is no limit. */
  #limitAt(place: number, limit: CurrentLimit | undefined): Uint8Array {
    if (limit === undefined) return noBytes;
    const before = this.#placed[place];
    if (before?.limit === limit) return before.bytes;
    const bytes = this.#limitBytes(limit);
    if (place < placedMax) this.#placed[place] = { limit, bytes };
    return bytes;
  }

  /** Encodes a limit only once, because its bytes are the same in every response. */
  #limitBytes(limit: CurrentLimit): Uint8Array {
    const known = this.#limits.get(limit);
    if (known !== undefined) return known;
    const bytes = encodeCurrentLimit(limit);
    this.#limits.set(limit, bytes);
    return bytes;
  }
}

/** A limit, and its bytes in responses. */
interface PlacedLimit {
  readonly limit: CurrentLimit;
  readonly bytes: Uint8Array;
}

/** Number of positions whose limit is kept. Almost all responses have at most as many. */
const placedMax = 8;

const noBytes = new Uint8Array(0);

/** Maximum value of operations on signed 32-bit integers. */
const smallMax = 2 ** 31 - 1;

/** Bytes per allocation. */
const slabBytes = 16_384;

/** Tags, lengths and numbers of a status, each number of at most eight bytes (below 2^53). */
const statusLengthMaxWithoutLimit = 48;

/** The response to a denied request with one descriptor, reused as long as it stays the same. */
class LastAnswer {
  readonly #status: DescriptorVerdict;
  readonly #isDenied: boolean;
  readonly tail: Uint8Array | undefined;
  readonly bytes: Uint8Array;

  constructor({ status, isDenied, tail, bytes }: Answered) {
    this.#status = status;
    this.#isDenied = isDenied;
    this.tail = tail;
    this.bytes = bytes;
  }

  isFor(status: DescriptorVerdict, isDenied: boolean): boolean {
    const { isOver, currentLimit, limitRemaining, durationUntilResetUs } = this.#status;
    return (
      isDenied === this.#isDenied &&
      status.isOver === isOver &&
      status.currentLimit === currentLimit &&
      status.limitRemaining === limitRemaining &&
      secondsOf(status.durationUntilResetUs) === secondsOf(durationUntilResetUs)
    );
  }
}

interface Answered extends Pick<LastAnswer, "tail" | "bytes"> {
  readonly status: DescriptorVerdict;
  readonly isDenied: boolean;
}

function secondsOf(durationUs: number | undefined): number | undefined {
  return durationUs === undefined ? undefined : headerSeconds(durationUs);
}

/** Field numbers with their wire types, as the one byte that each takes. */
const tags = {
  overallCode: (1 << 3) | 0,
  status: (2 << 3) | 2,
  statusCode: (1 << 3) | 0,
  currentLimit: (2 << 3) | 2,
  limitRemaining: (3 << 3) | 0,
  durationUntilReset: (4 << 3) | 2,
  durationSeconds: (1 << 3) | 0,
  requestsPerUnit: (1 << 3) | 0,
  unit: (2 << 3) | 0,
  name: (3 << 3) | 2,
  unitMultiplier: (4 << 3) | 2,
  wrappedValue: (1 << 3) | 0,
} as const;

/** Source: RateLimitResponse.Code. */
const codes = { unknown: 0, ok: 1, overLimit: 2 } as const;

function codeOf({ isOver }: DescriptorVerdict): number {
  if (isOver === undefined) return codes.unknown;
  return isOver ? codes.overLimit : codes.ok;
}

/** Source: RateLimitResponse.RateLimit.Unit. */
const unitNumbers: Readonly<Record<LimitUnit, number>> = {
  second: 1,
  minute: 2,
  hour: 3,
  day: 4,
  month: 5,
  year: 6,
  week: 7,
};

function varintLength(value: number): number {
  if (value <= smallMax) return 1 + Math.floor((31 - Math.clz32(value | 1)) / 7);
  let length = 1;
  for (let bound = 128; value >= bound; bound *= 128) length += 1;
  return length;
}

/** Writes a whole number, 0 to 2^53. @returns the end of what it wrote */
function putVarint(bytes: Uint8Array, from: number, value: number): number {
  let at = from;
  let large = value;
  for (; large > smallMax; at += 1) {
    const rest = Math.floor(large / 128);
    bytes[at] = (large - rest * 128) | 128;
    large = rest;
  }
  // 32-bit integers: `%` and `/` of other numbers cost ten times as much.
  let small = large | 0;
  for (; small > 127; at += 1) {
    bytes[at] = (small & 127) | 128;
    small >>>= 7;
  }
  bytes[at] = small;
  return at + 1;
}

/** Encodes the whole field, with its tag and length. */
function encodeCurrentLimit(limit: CurrentLimit): Uint8Array {
  const { name, hits, unit, unitMultiplier } = limit;
  const bytes: number[] = [];
  if (hits !== 0) bytes.push(tags.requestsPerUnit, ...varintBytes(hits));
  bytes.push(tags.unit, unitNumbers[unit]);
  if (name !== undefined && name !== "") {
    const text = Buffer.from(name, "utf8");
    bytes.push(tags.name, ...varintBytes(text.length), ...text);
  }
  if (unitMultiplier !== 1) {
    const value = varintBytes(unitMultiplier);
    bytes.push(tags.unitMultiplier, value.length + 1, tags.wrappedValue, ...value);
  }
  return Uint8Array.from([tags.currentLimit, ...varintBytes(bytes.length), ...bytes]);
}

function varintBytes(value: number): readonly number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
  return bytes;
}
