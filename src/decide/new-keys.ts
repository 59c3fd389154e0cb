import type { LimitKey } from "../core/limit.js";

/** What a `NewKeyGuard` is made of. */
export interface NewKeyGuardOptions {
  /** New keys of one rule that one second may bring. */
  readonly newKeysPerSecondMax: number;
}

/** Sightings are bits under a hash of the key: 2^23 of them, 1 MiB a generation. */
const sightingBits = 8_388_608;

/** Set bits at which a generation ends: then one new key in four would pass for a known one. */
const sightingsMax = sightingBits / 4;

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
