import { GenerationalMap } from "../../core/collections/generational-map.js";
import type { Limit, LimitKey } from "../../core/limits/limit.js";

interface NewKeyGuardOptions {
  /** Maximum number of new keys per rule and second. */
  readonly newKeysPerSecondMax: number;
}

/** Bits that record seen keys by hash: 2^23 bits, 1 MiB per generation. */
const sightingBits = 8_388_608;

/**
 * Set bits at which a generation ends. At this point, one new key in four is mistaken for a known
 * one.
 */
const sightingsMax = sightingBits / 4;

/** Sizes of the limits that requests carry for one descriptor and period, and since when. */
interface CarriedSizes {
  readonly sinceMs: number;
  readonly hits: number[];
}

/** Maximum number of sizes with a bucket of their own in one period. Others share one bucket. */
export const carriedSizesMax = 8;

/** Maximum memory for carried limits, in bytes. */
const carriedBytesMax = 8_388_608;

/** Memory for the sizes of one key, without the key, in bytes. */
const carriedSizesBytes = 300;

/** New keys of a rule in the current second. */
export interface NewKeyCount {
  secondMs: number;
  count: number;
  /** Requests sent to the shared overflow bucket so far. */
  overflowCount: number;
}

/**
 * Limits floods of new keys. A caller that sends a new value with every request would create a
 * bucket for each and fill the store. Known keys always pass. New keys pass up to a rate per rule
 * and second; further ones share one bucket.
 *
 * Known keys are recorded as bits, not by name: two generations of 2 million keys each. A new key
 * is sometimes mistaken for a known one. The reverse never happens within a generation.
 */
export class NewKeyGuard {
  readonly #newKeysPerSecondMax: number;
  #current = new Uint32Array(sightingBits / 32);
  #previous = new Uint32Array(sightingBits / 32);
  #currentCount = 0;
  readonly #carried = new GenerationalMap<LimitKey, CarriedSizes>(
    carriedBytesMax,
    ({ length }) => carriedSizesBytes + 2 * length,
  );

  constructor({ newKeysPerSecondMax }: NewKeyGuardOptions) {
    this.#newKeysPerSecondMax = newKeysPerSecondMax;
  }

  /** Whether the key may have its own bucket. Counts the key for its rule if it is new. */
  admits(key: LimitKey, counts: NewKeyCount, nowMs: number): boolean {
    const hash = hashText(key);
    const word = (hash >>> 5) & (sightingBits / 32 - 1);
    const bit = 1 << (hash & 31);
    if (((this.#current[word] ?? 0) & bit) !== 0) return true;
    if (((this.#previous[word] ?? 0) & bit) !== 0) {
      this.#note(word, bit);
      return true;
    }
    if (nowMs - counts.secondMs >= 1_000) {
      counts.secondMs = nowMs;
      counts.count = 0;
    }
    if (counts.count >= this.#newKeysPerSecondMax) {
      counts.overflowCount += 1;
      return false;
    }
    counts.count += 1;
    this.#note(word, bit);
    return true;
  }

  /**
   * Whether a carried limit may have its own bucket. A bucket that is first used in a period is
   * dropped one period later at the latest, so a descriptor has at most twice `carriedSizesMax` of
   * them.
   *
   * @param shared the key from `overrideKey`
   */
  admitsSize(
    shared: LimitKey,
    { hits, periodUs }: Pick<Limit, "hits" | "periodUs">,
    nowMs: number,
  ): boolean {
    const known = this.#carried.get(shared);
    if (known === undefined || nowMs - known.sinceMs >= periodUs / 1_000) {
      this.#carried.set(shared, { sinceMs: nowMs, hits: [hits] });
      return true;
    }
    if (known.hits.includes(hits)) return true;
    if (known.hits.length >= carriedSizesMax) return false;
    known.hits.push(hits);
    return true;
  }

  #note(word: number, bit: number): void {
    if (this.#currentCount >= sightingsMax) {
      const emptied = this.#previous.fill(0);
      this.#previous = this.#current;
      this.#current = emptied;
      this.#currentCount = 0;
    }
    this.#current[word] = (this.#current[word] ?? 0) | bit;
    this.#currentCount += 1;
  }
}

/** FNV-1a over UTF-16 units, with a final mix so that the low bits depend on every unit. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  hash ^= hash >>> 15;
  return Math.imul(hash, 0x2c1b3c6d) >>> 0;
}
