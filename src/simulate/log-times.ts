import { parseTimestampUs } from "../core/base/timestamp.js";
import { GenerationalMap } from "../core/collections/generational-map.js";

/** `2026-01-05T08:00:00`, what a log says again and again. */
const secondChars = 19;

/** Seconds that are kept; requests that end together began within a few of them. */
const keptSecondsMax = 4_096;

/** Reads the times of a log as `parseTimestampUs` does, and most of the text once a second. */
export class LogTimes {
  readonly #seconds = new GenerationalMap<string, number>(keptSecondsMax);

  /** The last one of them, and what it is. */
  #second = "";
  #secondUs = 0;

  /** Microseconds since 1970; undefined for what is no time. */
  read(text: string): number | undefined {
    const fractionUs = fractionOf(text);
    if (fractionUs === undefined) return parseTimestampUs(text);
    if (this.#second !== "" && text.startsWith(this.#second)) return this.#secondUs + fractionUs;
    const second = text.slice(0, secondChars);
    let secondUs = this.#seconds.get(second);
    if (secondUs === undefined) {
      const timeUs = parseTimestampUs(text);
      if (timeUs === undefined) return undefined;
      secondUs = timeUs - fractionUs;
      this.#seconds.set(second, secondUs);
    }
    this.#second = second;
    this.#secondUs = secondUs;
    return secondUs + fractionUs;
  }
}

const [point, zero, nine] = [0x2e, 0x30, 0x39];

/** Behind the seconds, up to a `Z`, in microseconds; undefined where something else stands. */
function fractionOf(text: string): number | undefined {
  const last = text.length - 1;
  if (last < secondChars || !text.endsWith("Z")) return undefined;
  if (last === secondChars) return 0;
  const digits = last - secondChars - 1;
  if (text.charCodeAt(secondChars) !== point || digits < 1 || digits > 9) return undefined;
  let fractionUs = 0;
  let digitUs = 100_000;
  for (let i = secondChars + 1; i < last; i += 1) {
    const digit = text.charCodeAt(i);
    if (digit < zero || digit > nine) return undefined;
    // What is finer than a microsecond is cut.
    fractionUs += (digit - zero) * Math.floor(digitUs);
    digitUs /= 10;
  }
  return fractionUs;
}
