import type { ByteReader, ByteWriter } from "./byte-fields.js";
import { scaleCodeMax } from "./report-scale.js";

/** How hard a service is pressed at one replica. */
export interface ServicePressure {
  /** Named by the policy. */
  readonly service: string;
  /** The share of requests that the expected wait would refuse there now, 0 to 1. */
  readonly rejectRatio: number;
  /** What it stands for: permits that may be in use there, from 0. */
  readonly weight: number;
  /** Requests that wait there for a permit. */
  readonly waitingCount: number;
  /** How long a request is in work, in milliseconds; undefined: not known there. */
  readonly serviceMs: number | undefined;
}

/** The largest record in bytes. */
export const reportBytesMax = 4_194_304;

/** The most rows of a record, one for each Envoy and service: of 10,000 Envoys with 26 services. */
export const recordRowsMax = 262_144;

/** The most services of a record, and the most identities of its Envoys beside `textsMax`. */
export const recordServicesMax = 4_096;

/** Another one is another program's, which reads none of ours. */
export const reportFormat = 3;

/** Whether a record has rows at all, and whether it says all or what differs from a full one. */
export const recordFlags = { isDelta: 1, isQuiet: 2 } as const;

/** Stands for an Envoy whose owner nobody knows: an identity is never empty. */
export const noOwner = "";

/** Ages in steps of so many milliseconds, rounded up: nothing is told to be newer than it is. */
export const ageStepMs = 16;

/** When samples begin, in longer steps, so that most are added up. */
export const sampleStepMs = 256;

/** Of Envoys whose last report is longer ago there are no samples: nobody knows what is missing. */
export const sampleAgeMsMax = 15_000;

/** Of a service's samples from one time on: those with a median, and those without. */
export const samplesPerServiceMax = 2 * (Math.floor(sampleAgeMsMax / sampleStepMs) + 2);

/** The oldest age that is told; what is older is told as none. */
export const ageMsMax = 65_536;

/** The largest code of an age: behind the two that stand for something else. */
const ageCodeMax = 2 + Math.ceil(ageMsMax / ageStepMs);

/** What is told of each Envoy. */
export const nodeFields = {
  /** 0: it has told nothing since the record before; else 1 and how old its numbers are. */
  news: 0,
  /** 0: it is not there; 1: when its numbers were true; else 2 and how old `held` is. */
  held: 1,
} as const;

/** What is told of each Envoy and service: codes of `ReportScale`, but for the last two. */
export const rowFields = {
  demand: 0,
  inFlight: 1,
  rps: 2,
  overflow: 3,
  /** 0: not known; else 1 and the code. */
  high: 4,
  /** As it is. */
  held: 5,
  /** 0: the Envoy's news are its own; 1: it has none; else 2 and how much older they are. */
  lag: 6,
} as const;

/** The largest code of each field, by its place. */
export const nodeCodeMosts: readonly number[] = [ageCodeMax, ageCodeMax];

/** The same of a row. */
export const rowCodeMosts: readonly number[] = [
  ...[scaleCodeMax, scaleCodeMax, scaleCodeMax, scaleCodeMax],
  scaleCodeMax + 1,
  2 ** 32 - 1,
  ageCodeMax,
];

/** In the first byte of an entry: others were skipped before it. Below it, a bit for each field. */
const gapBit = 128;

/** What an entry takes at most: its first byte, the gap, and seven differences. */
export const entryBytesMax = 1 + 8 * 5;

/** Writes what differs from the codes that a reader has: nothing where nothing does. */
export class ChangeWriter {
  readonly #writer: ByteWriter;
  readonly #stride: number;
  /** The place that an entry without a gap has. */
  #next = 0;
  count = 0;

  constructor(writer: ByteWriter, stride: number) {
    this.#writer = writer;
    this.#stride = stride;
  }

  /**
   * @param place above the one before
   * @param codes as long as the stride
   * @param base all that the reader has, one place behind the other
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

/** Reads what a `ChangeWriter` wrote into the codes that it was a difference from, in turns. */
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
