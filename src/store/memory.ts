import type { Clock, Random } from "../core/base/clock.js";
import { assert, ServiceError } from "../core/base/errors.js";
import { createSecret, type Digest } from "../core/collections/keyed-hash.js";
import type { Bucket } from "../core/limits/bucket.js";
import { type BucketTable, decideRepeated } from "../core/limits/gcra.js";
import type { LimitKey } from "../core/limits/limit.js";
import { assertBatch } from "./batch.js";
import { BucketSlots, type Slot } from "./bucket-slots.js";
import type { LimitStore, StoredBucket, StoreOutcome, StoreRequest } from "./limit-store.js";

/** Default of `keysMax`: 38 to 43 MB if every key is in use, whatever their length. */
export const defaultKeysMax = 1_000_000;

/** Slots checked per decided request. */
const sweptPerRequest = 1;

/**
 * Additional slots checked per new key. More than one, so that expired keys are removed faster than
 * new ones can arrive: expired keys never take more than about a quarter of the room.
 */
const sweptPerNewKey = 4;

/**
 * How long a drained key is kept while the store is at most half full. Most keys in use are found
 * drained and are charged again some time later, and among a million keys, removing one and adding
 * it again costs a third of a decision.
 */
const drainedKeptUs = 60_000_000;

/** Slots checked if there is no room, before a new key is refused. */
const sweptWhenFull = 64;

interface MemoryLimitStoreOptions {
  readonly clock: Clock;
  /**
   * Creates the secret for the digests of keys, so that no caller can make two keys collide.
   * Default: a fixed, public secret, for tests.
   */
  readonly random?: Random | undefined;
  /**
   * Maximum number of keys, at least 1. Default: 1,000,000. A new key beyond it is refused, and its
   * limits answer by their own failure mode. `local` asks a second store of this kind; if that is
   * full as well, it decides as if the key had never been seen.
   */
  readonly keysMax?: number;
}

/**
 * A `LimitStore` in this process. Its state is private to the process and ends with it.
 *
 * Its time starts at the wall clock and continues monotonically, so later steps of the wall clock
 * change nothing. It never waits, so deadlines are ignored. Drained buckets are removed while
 * others are charged, without a timer and with constant work per request. Memory for the highest
 * number of keys ever held is kept for new ones.
 */
export class MemoryLimitStore implements LimitStore {
  readonly #clock: Clock;
  /** Offset of the store's time from monotonic time. */
  readonly #offsetUs: number;
  readonly #keysMax: number;
  readonly #slots: BucketSlots;
  readonly #writes: PendingWrites;
  /** New keys since the last sweep. */
  #unsweptKeyCount = 0;
  #isClosed = false;

  constructor({ clock, random, keysMax = defaultKeysMax }: MemoryLimitStoreOptions) {
    this.#slots = new BucketSlots(random === undefined ? testSecret : createSecret(random));
    this.#clock = clock;
    this.#offsetUs = clock.epochUs() - Math.floor(clock.monotonicMs() * 1_000);
    this.#keysMax = keysMax;
    this.#writes = new PendingWrites(this.#slots);
  }

  /** Number of keys, including drained ones that no sweep has reached yet. */
  get keyCount(): number {
    return this.#slots.size;
  }

  /**
   * Returns the digest of a key, which is all this store keeps of it. Both name the same bucket.
   */
  shorten(key: LimitKey): LimitKey {
    return this.#slots.shorten(key);
  }

  /**
   * Decides at once. A request that would add a key without room fails with `STORE_FULL` and
   * charges nothing; its neighbours in the batch are not affected. Rejects with `STORE_CLOSED`.
   */
  async take(batch: readonly StoreRequest[]): Promise<readonly StoreOutcome[]> {
    this.#assertOpen();
    assertBatch(batch);
    const nowUs = this.#nowUs();
    const isHalfFull = 2 * this.#slots.size > this.#keysMax;
    const keptUs = isHalfFull ? 0 : drainedKeptUs;
    const sweptCount = sweptPerRequest * batch.length + sweptPerNewKey * this.#unsweptKeyCount;
    this.#unsweptKeyCount = 0;
    this.#slots.sweep(sweptCount, nowUs - keptUs);
    this.#slots.readAhead(batch);
    const outcomes: StoreOutcome[] = [];
    for (const request of batch) outcomes.push(this.#takeOne(request, nowUs));
    return outcomes;
  }

  async peek(key: LimitKey): Promise<StoredBucket | undefined> {
    this.#assertOpen();
    const nowUs = this.#nowUs();
    const bucket = this.#read(key, nowUs);
    return bucket === undefined ? undefined : { bucket, nowUs };
  }

  async forget(keys: readonly LimitKey[]): Promise<number> {
    this.#assertOpen();
    const nowUs = this.#nowUs();
    let count = 0;
    for (const key of keys) {
      if (this.#read(key, nowUs) !== undefined) count += 1;
      this.#slots.delete(key);
    }
    return count;
  }

  async ping(): Promise<void> {
    this.#assertOpen();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#slots.clear();
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new ServiceError("STORE_CLOSED");
  }

  #nowUs(): number {
    return this.#offsetUs + Math.floor(this.#clock.monotonicMs() * 1_000);
  }

  #read(key: LimitKey, nowUs: number): Bucket | undefined {
    const slot = this.#slots.find(key);
    if (slot === undefined || this.#slots.isDrained(slot, nowUs)) return undefined;
    return this.#slots.read(slot);
  }

  #takeOne(request: StoreRequest, nowUs: number): StoreOutcome {
    const writes = this.#writes;
    writes.begin(nowUs);
    const { grantedCount, results } = decideRepeated(request, writes, nowUs);
    if (!this.#hasRoom(nowUs)) return { kind: "failed", code: "STORE_FULL" };
    this.#unsweptKeyCount += writes.newCount;
    writes.commit();
    return { kind: "decided", result: { grantedCount, results, nowUs } };
  }

  #hasRoom(nowUs: number): boolean {
    const writes = this.#writes;
    if (writes.newCount === 0 || this.#slots.size + writes.newCount <= this.#keysMax) return true;
    this.#slots.sweep(sweptWhenFull, nowUs);
    // The sweep may have removed a drained bucket of this same request.
    writes.findAgain();
    return this.#slots.size + writes.newCount <= this.#keysMax;
  }
}

const testSecret: Readonly<Digest> = { a: 1, b: 2, c: 3, d: 4 };

/** A key of the current request, and what happens to its bucket. */
interface Asked {
  key: LimitKey;
  /** Slot of its bucket, drained or not. */
  slot: Slot | undefined;
  outcome: "kept" | "stored" | "deleted";
  bucket: Bucket;
  drainedUs: number;
}

/**
 * The writes of one request, held back until they are known to fit. Each key is looked up once,
 * since that is the most expensive part of a decision. One object serves all requests in turn, so
 * that none is allocated per request.
 */
class PendingWrites implements BucketTable {
  readonly #slots: BucketSlots;
  /** The first `#askedCount` belong to the current request, the others to earlier ones. */
  readonly #asked: Asked[] = [];
  #askedCount = 0;
  /** Index at which the search for the next key to write starts. */
  #nextWrite = 0;
  #newCount = 0;
  #nowUs = 0;

  constructor(slots: BucketSlots) {
    this.#slots = slots;
  }

  /** Starts a request and forgets the previous one. */
  begin(nowUs: number): void {
    this.#nowUs = nowUs;
    this.#askedCount = 0;
    this.#nextWrite = 0;
    this.#newCount = 0;
  }

  /** Number of keys to store that have no slot yet. */
  get newCount(): number {
    return this.#newCount;
  }

  get(key: LimitKey): Bucket | undefined {
    const slot = this.#slots.find(key);
    const asked = this.#asked[this.#askedCount];
    this.#askedCount += 1;
    if (asked === undefined) {
      this.#asked.push({ key, slot, outcome: "kept", bucket: emptyBucket, drainedUs: 0 });
    } else {
      asked.key = key;
      asked.slot = slot;
      asked.outcome = "kept";
    }
    if (slot === undefined || this.#slots.isDrained(slot, this.#nowUs)) return undefined;
    return this.#slots.read(slot);
  }

  set(key: LimitKey, bucket: Bucket, timeToFullUs: number): void {
    const asked = this.#askedFor(key);
    asked.outcome = "stored";
    asked.bucket = bucket;
    asked.drainedUs = this.#nowUs + timeToFullUs;
    if (asked.slot === undefined) this.#newCount += 1;
  }

  delete(key: LimitKey): void {
    this.#askedFor(key).outcome = "deleted";
  }

  /** Looks the keys up again, because a sweep may have deleted buckets. */
  findAgain(): void {
    this.#newCount = 0;
    for (let i = 0; i < this.#askedCount; i += 1) {
      const asked = this.#asked[i];
      if (asked === undefined) continue;
      asked.slot = this.#slots.find(asked.key);
      if (asked.outcome === "stored" && asked.slot === undefined) this.#newCount += 1;
    }
  }

  /** Writes existing buckets first, since adding or deleting a bucket moves others. */
  commit(): void {
    let isMoving = false;
    for (let i = 0; i < this.#askedCount; i += 1) {
      const asked = this.#asked[i];
      if (asked === undefined || asked.outcome === "kept") continue;
      const { slot, outcome, bucket, drainedUs } = asked;
      if (outcome === "deleted" || slot === undefined) isMoving = true;
      else this.#slots.write(slot, bucket, drainedUs);
    }
    if (isMoving) this.#commitMoving();
  }

  #commitMoving(): void {
    for (let i = 0; i < this.#askedCount; i += 1) {
      const asked = this.#asked[i];
      if (asked === undefined || asked.outcome === "kept") continue;
      const { key, slot, outcome, bucket, drainedUs } = asked;
      if (outcome === "deleted") this.#slots.delete(key);
      else if (slot === undefined) this.#slots.add(key, bucket, drainedUs);
    }
  }

  /** Finds the entry of a key. Keys are mostly written in the order in which they were read. */
  #askedFor(key: LimitKey): Asked {
    for (let i = 0; i < this.#askedCount; i += 1) {
      const next = this.#nextWrite < this.#askedCount ? this.#nextWrite : 0;
      this.#nextWrite = next + 1;
      const asked = this.#asked[next];
      if (asked !== undefined && asked.key === key) return asked;
    }
    assert(false, "the law writes only what it has read");
  }
}

const emptyBucket: Bucket = { level: 0, tUs: 0 };
