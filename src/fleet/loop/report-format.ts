import type { ByteReader, ByteWriter } from "./byte-fields.js";
import { scaleCodeMax } from "./report-scale.js";

/** Pressure on a service at one replica. */
export interface ServicePressure {
  /** Name in the policy. */
  readonly service: string;
  /** Ratio of requests that the expected wait would refuse there now, 0 to 1. */
  readonly rejectRatio: number;
  /** Weight of the ratio: permits that may be in use there, from 0. */
  readonly weight: number;
  /** Number of requests that wait for a permit there. */
  readonly waitingCount: number;
  /** Service time of a request, in milliseconds. Undefined if it is not known there. */
  readonly serviceMs: number | undefined;
}

/** Maximum size of a record, in bytes. */
export const reportBytesMax = 4_194_304;

/** Maximum rows of a record, one for each Envoy and service: 10,000 Envoys with 26 services. */
export const recordRowsMax = 262_144;

/** Maximum services of a record. */
export const recordServicesMax = 4_096;

/** Format version. Programs do not read records of other versions. */
export const reportFormat = 3;

/** Whether a record is a difference from a full one, and whether it has no rows. */
export const recordFlags = { isDelta: 1, isQuiet: 2 } as const;

/** Stands for an unknown owner of an Envoy. An identity is never empty. */
export const noOwner = "";

/** Step of ages, in milliseconds. Ages are rounded up, so that nothing seems newer than it is. */
export const ageStepMs = 16;

/** Step of the times when samples begin, in milliseconds: longer, so that most are summed. */
export const sampleStepMs = 256;

/** Envoys with an older last report have no samples, because it is unknown what is missing. */
export const sampleAgeMsMax = 15_000;

/** Maximum sums of a service's samples: for each start time, one with and one without a median. */
export const samplesPerServiceMax = 2 * (Math.floor(sampleAgeMsMax / sampleStepMs) + 2);

/** Maximum age that is reported, in milliseconds. Older values are reported as missing. */
export const ageMsMax = 65_536;

/** Largest code of an age. The first two codes have other meanings. */
const ageCodeMax = 2 + Math.ceil(ageMsMax / ageStepMs);

/** Fields of each Envoy. */
export const nodeFields = {
  /** 0: it has not reported since the previous record; otherwise 1 plus the age of its numbers. */
  news: 0,
  /** 0: it is gone; 1: `held` is as old as its numbers; otherwise 2 plus the age of `held`. */
  held: 1,
} as const;

/** Fields of each Envoy and service: codes of `ReportScale`, except for the last two. */
export const rowFields = {
  demand: 0,
  inFlight: 1,
  rps: 2,
  overflow: 3,
  /** 0: not known; otherwise 1 plus the code. */
  high: 4,
  /** The number itself. */
  held: 5,
  /** 0: as old as the Envoy's numbers; 1: it has none; otherwise 2 plus how much older it is. */
  lag: 6,
} as const;

/** Largest code of each field of an Envoy, by its position. */
export const nodeCodeMosts: readonly number[] = [ageCodeMax, ageCodeMax];

/** Largest code of each field of a row, by its position. */
export const rowCodeMosts: readonly number[] = [
  ...[scaleCodeMax, scaleCodeMax, scaleCodeMax, scaleCodeMax],
  scaleCodeMax + 1,
  2 ** 32 - 1,
  ageCodeMax,
];

/** Set in an entry's first byte if a gap precedes it. The lower bits stand for the fields. */
const gapBit = 128;

/** Maximum size of an entry: its first byte, the gap, and seven differences. */
export const entryBytesMax = 1 + 8 * 5;

/** Writes the differences from the codes that a reader has. Equal codes are not written. */
export class ChangeWriter {
  readonly #writer: ByteWriter;
  readonly #stride: number;
  /** Place of an entry without a gap. */
  #next = 0;
  count = 0;

  constructor(writer: ByteWriter, stride: number) {
    this.#writer = writer;
    this.#stride = stride;
  }

  /**
   * @param place above the previous one
   * @param codes as many as the stride
   * @param base all codes that the reader has, place by place
   */
  add(place: number, codes: Uint32Array, base: Uint32Array): void {
    const writer = this.#writer;
    const from = place * this.#stride;
    let mask = 0;
    for (let field = 0; field < this.#stride; field += 1) {
      if (codes[field] !== base[from + field]) mask += 1 << field;
    }
    if (mask === 0) return;
    const gap = place - this.#next;
    writer.byte(gap > 0 ? mask + gapBit : mask);
    if (gap > 0) writer.count(gap);
    for (let field = 0; field < this.#stride; field += 1) {
      if ((mask & (1 << field)) === 0) continue;
      writer.difference((codes[field] ?? 0) - (base[from + field] ?? 0));
    }
    this.#next = place + 1;
    this.count += 1;
  }
}

/** Reads the changes of a `ChangeWriter` into the codes that they are based on, in turns. */
export function* readChanges(
  reader: ByteReader,
  codes: Uint32Array,
  mosts: readonly number[],
): Generator<undefined, void> {
  const stride = mosts.length;
  const placeCount = codes.length / stride;
  let next = 0;
  yield* reader.rows({ rowBytes: 2, countMax: placeCount }, () => {
    const head = reader.byte();
    const place = (head & gapBit) === 0 ? next : next + reader.count();
    if (place >= placeCount) return reader.refuse();
    const from = place * stride;
    for (let field = 0; field < stride; field += 1) {
      if ((head & (1 << field)) === 0) continue;
      const code = (codes[from + field] ?? 0) + reader.difference();
      if (code < 0 || code > (mosts[field] ?? 0)) return reader.refuse();
      codes[from + field] = code;
    }
    next = place + 1;
  });
}
