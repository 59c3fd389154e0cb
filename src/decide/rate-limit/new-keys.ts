import { GenerationalMap } from "../../core/collections/generational-map.js";
import type { Limit, LimitKey } from "../../core/limits/limit.js";

interface NewKeyGuardOptions {
  /** New keys of one rule that one second may bring. */
  readonly newKeysPerSecondMax: number;
}

/** Sightings are bits under a hash of the key: 2^23 of them, 1 MiB a generation. */
const sightingBits = 8_388_608;

/** Set bits at which a generation ends: then one new key in four would pass for a known one. */
const sightingsMax = sightingBits / 4;

/** Sizes of limits that requests carry for one descriptor and period, and since when. */
interface CarriedSizes {
  readonly sinceMs: number;
  readonly hits: number[];
}

/** The most sizes that get a bucket of their own in one period; all others share one. */
export const carriedSizesMax = 8;

/** The most bytes of what is remembered of carried limits. */
const carriedBytesMax = 8_388_608;

/** What the sizes of one key take, in bytes, beside the key. */
const carriedSizesBytes = 300;

/** How many new keys a rule has brought in the running second. */
export interface NewKeyCount {
  secondMs: number;
  count: number;
  /** Requests that were sent to the shared overflow bucket so far. */
  overflowCount: number;
}

/**
 * Holds back a flood of new keys: a caller who makes up a value for every request gets a bucket for
 * each, and fills the store. Keys seen before always pass; new ones pass up to so many a second and
 * rule, the rest share one bucket.
 *
 * Which keys were seen is remembered in bits, not by name: two generations of 2 million keys. A new
 * key passes for a known one now and then, never the other way round within a generation.
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

  /** Whether the key may have a bucket of its own; counts it for its rule when it is new. */
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
   * Whether a carried limit may have a bucket of its own: one that is used for the first time ends
   * a period later at the latest, so a descriptor has at most twice `carriedSizesMax` of them.
   *
   * @param shared what `overrideKey` says
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

/** FNV-1a over UTF-16 units, with a last mix so that the low bits depend on all of them. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  hash ^= hash >>> 15;
  return Math.imul(hash, 0x2c1b3c6d) >>> 0;
}
