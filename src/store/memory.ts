import type { Clock } from "../core/clock.js";
import { ServiceError } from "../core/errors.js";
import { type Bucket, type BucketTable, decideRepeated } from "../core/gcra.js";
import type { LimitKey } from "../core/limit.js";
import { assertBatch } from "./batch.js";
import type { LimitStore, StoredBucket, StoreOutcome, StoreRequest } from "./limit-store.js";

/** The default of `keysMax`: about 250 MB when every key is in use. */
export const defaultKeysMax = 1_000_000;

/**
 * Entries looked at for each request that is decided. More than one, so that expired keys leave
 * faster than new ones can arrive: at most about a quarter of the room is ever held by the expired.
 */
const sweptPerRequest = 4;

/** Entries looked at when there is no room, before a new key is refused. */
const sweptWhenFull = 64;

/** What a `MemoryLimitStore` is made of. */
export interface MemoryLimitStoreOptions {
  readonly clock: Clock;
  /** The most keys kept at a time, from 1. Default 1,000,000. */
  readonly keysMax?: number;
}

interface Entry {
  readonly bucket: Bucket;
  /** From this time on the bucket is empty, and the entry is as good as absent. */
  readonly expiresUs: number;
}

/**
 * A `LimitStore` in this process: state dies with it and nobody else sees it.
 *
 * Its time is monotonic, so steps of the wall clock change nothing. It never waits, so deadlines
 * are ignored. Expired keys leave as others are charged: no timer, and constant work a request.
 */
export class MemoryLimitStore implements LimitStore {
  readonly kind = "memory";
  readonly #clock: Clock;
  readonly #keysMax: number;
  readonly #entries = new Map<LimitKey, Entry>();
  #sweep: MapIterator<[LimitKey, Entry]> | undefined;
  #isClosed = false;

  constructor({ clock, keysMax = defaultKeysMax }: MemoryLimitStoreOptions) {
    this.#clock = clock;
    this.#keysMax = keysMax;
  }

  /** Keys held now, expired ones that no sweep has met yet included. */
  get keyCount(): number {
    return this.#entries.size;
  }

  /**
   * Decides at once. A request that would add a key where none fits fails with `STORE_FULL` and
   * charges nothing; its neighbours in the batch are not touched. Rejects with `STORE_CLOSED`.
   */
  async take(batch: readonly StoreRequest[]): Promise<readonly StoreOutcome[]> {
    this.#assertOpen();
    assertBatch(batch);
    const nowUs = this.#nowUs();
    const outcomes: StoreOutcome[] = [];
    for (const request of batch) {
      this.#dropExpired(sweptPerRequest, nowUs);
      outcomes.push(this.#takeOne(request, nowUs));
    }
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
      this.#entries.delete(key);
    }
    return count;
  }

  async ping(): Promise<void> {
    this.#assertOpen();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#entries.clear();
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new ServiceError("STORE_CLOSED");
  }

  #nowUs(): number {
    return Math.floor(this.#clock.monotonicMs() * 1_000);
  }

  #read(key: LimitKey, nowUs: number): Bucket | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined || entry.expiresUs <= nowUs ? undefined : entry.bucket;
  }

  #takeOne(request: StoreRequest, nowUs: number): StoreOutcome {
    const writes = new PendingWrites((key) => this.#read(key, nowUs));
    const { grantedCount, results } = decideRepeated(request, writes, nowUs);
    if (!this.#hasRoomFor(writes, nowUs)) return { kind: "failed", code: "STORE_FULL" };
    for (const key of writes.deleted) this.#entries.delete(key);
    for (const { key, bucket, timeToFullUs } of writes.stored) {
      this.#entries.set(key, { bucket, expiresUs: nowUs + timeToFullUs });
    }
    return { kind: "decided", result: { grantedCount, results, nowUs } };
  }

  #hasRoomFor(writes: PendingWrites, nowUs: number): boolean {
    let newCount = 0;
    for (const { key } of writes.stored) if (!this.#entries.has(key)) newCount += 1;
    if (newCount === 0 || this.#entries.size + newCount <= this.#keysMax) return true;
    this.#dropExpired(sweptWhenFull, nowUs);
    // The sweep may have met an expired entry of this very request, so count again.
    newCount = 0;
    for (const { key } of writes.stored) if (!this.#entries.has(key)) newCount += 1;
    return this.#entries.size + newCount <= this.#keysMax;
  }

  /** Looks at the next few entries in a circle; a Map's iterator lives through its changes. */
  #dropExpired(lookedAtMax: number, nowUs: number): void {
    for (let lookedAt = 0; lookedAt < lookedAtMax; lookedAt += 1) {
      this.#sweep ??= this.#entries.entries();
      const next = this.#sweep.next();
      if (next.done === true) {
        this.#sweep = undefined;
        continue;
      }
      const [key, entry] = next.value;
      if (entry.expiresUs <= nowUs) this.#entries.delete(key);
    }
  }
}

/** What one request wants to write, held back until it is known to fit; the law writes last. */
class PendingWrites implements BucketTable {
  readonly stored: { key: LimitKey; bucket: Bucket; timeToFullUs: number }[] = [];
  readonly deleted: LimitKey[] = [];
  readonly get: (key: LimitKey) => Bucket | undefined;

  constructor(get: (key: LimitKey) => Bucket | undefined) {
    this.get = get;
  }

  set(key: LimitKey, bucket: Bucket, timeToFullUs: number): void {
    this.stored.push({ key, bucket, timeToFullUs });
  }

  delete(key: LimitKey): void {
    this.deleted.push(key);
  }
}
