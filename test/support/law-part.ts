import type { Clock } from "../../src/core/base/clock.js";
import { ServiceError } from "../../src/core/base/errors.js";
import { type Bucket, bucketTimeToFullUs, type Charge } from "../../src/core/limits/bucket.js";
import type { Compensation } from "../../src/core/limits/compensation.js";
import { type BucketTable, decideRepeated } from "../../src/core/limits/gcra.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import { assertBatch } from "../../src/store/batch.js";
import type { StoredBucket, StoreOutcome, StoreRequest } from "../../src/store/limit-store.js";
import type { GivenBack, SplitPart } from "../../src/store/split/split-part.js";
import { compensate } from "./compensate.js";

/** What becomes of one call. */
export type PartFate =
  | "answered"
  /** It does not run. */
  | "refused"
  /** It runs, and its reply is lost. */
  | "lost";

/** A call that a part was asked for, before it runs. */
export type PartCall =
  | { readonly kind: "take"; readonly batch: readonly StoreRequest[] }
  | { readonly kind: "giveBack"; readonly compensations: readonly Compensation[] };

/** Hits that were charged, as the part saw it. */
export interface ChargedHits {
  readonly charge: Charge;
  readonly count: number;
  readonly nowUs: number;
}

/**
 * A part of a split store that is the law itself on a table of its own, at a clock that may differ
 * from others'. A test says what becomes of each call, and when it runs.
 */
export class LawPart implements SplitPart {
  readonly #clock: Clock;
  readonly #offsetUs: number;
  readonly #buckets = new Map<LimitKey, { bucket: Bucket; expiresUs: number }>();
  #isClosed = false;
  /** Decides what becomes of a call, as soon as it may run. */
  meet: (call: PartCall) => PartFate | Promise<PartFate> = () => "answered";
  /** Everything that was charged and not a peek, also what was undone later. */
  readonly charged: ChargedHits[] = [];
  readonly givenBack: Compensation[] = [];

  /** @param offsetUs how far this part's clock is ahead */
  constructor(clock: Clock, offsetUs = 0) {
    this.#clock = clock;
    this.#offsetUs = offsetUs;
  }

  get nowUs(): number {
    return Math.floor(this.#clock.monotonicMs() * 1_000) + this.#offsetUs;
  }

  async take(batch: readonly StoreRequest[]): Promise<readonly StoreOutcome[]> {
    assertBatch(batch);
    return this.#run({ kind: "take", batch }, () => batch.map((one) => this.#takeOne(one)));
  }

  async giveBack(compensations: readonly Compensation[]): Promise<GivenBack> {
    return this.#run({ kind: "giveBack", compensations }, () => {
      this.givenBack.push(...compensations);
      const { nowUs } = this;
      const buckets = compensations.map((one) => this.#giveBackOne(one, nowUs));
      return { buckets, nowUs };
    });
  }

  async peek(key: LimitKey): Promise<StoredBucket | undefined> {
    this.#assertOpen();
    const { nowUs } = this;
    const bucket = this.#read(key, nowUs);
    return bucket === undefined ? undefined : { bucket, nowUs };
  }

  async forget(keys: readonly LimitKey[]): Promise<number> {
    this.#assertOpen();
    const held = keys.filter((key) => this.#read(key, this.nowUs) !== undefined);
    for (const key of keys) this.#buckets.delete(key);
    return new Set(held).size;
  }

  async ping(): Promise<void> {
    this.#assertOpen();
  }

  async verify(): Promise<void> {
    this.#assertOpen();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new ServiceError("STORE_CLOSED");
  }

  async #run<T>(call: PartCall, execute: () => T): Promise<T> {
    this.#assertOpen();
    const fate = await this.meet(call);
    if (fate === "refused") throw new ServiceError("STORE_UNAVAILABLE");
    const answer = execute();
    if (fate === "lost") throw new ServiceError("STORE_TIMEOUT");
    return answer;
  }

  #takeOne(request: StoreRequest): StoreOutcome {
    const { nowUs } = this;
    const result = decideRepeated(request, this.#table(nowUs), nowUs);
    request.charges.forEach((charge, i) => {
      const isCharged = charge.cost > 0 && result.grantedCount > 0;
      const isFitting = request.multiplicity > 1 || result.results[i]?.isOver === false;
      if (isCharged && isFitting) this.charged.push({ charge, count: result.grantedCount, nowUs });
    });
    return { kind: "decided", result: { ...result, nowUs } };
  }

  #giveBackOne(compensation: Compensation, nowUs: number): Bucket {
    const { key } = compensation;
    const stored = this.#read(key, nowUs);
    if (stored === undefined) return { level: 0, tUs: nowUs };
    const bucket = compensate(compensation, stored, nowUs);
    const timeToFullUs = bucketTimeToFullUs(compensation, bucket, nowUs) ?? 0;
    if (timeToFullUs > 0) this.#table(nowUs).set(key, bucket, timeToFullUs);
    else this.#buckets.delete(key);
    return bucket;
  }

  #read(key: LimitKey, nowUs: number): Bucket | undefined {
    const entry = this.#buckets.get(key);
    return entry === undefined || entry.expiresUs <= nowUs ? undefined : entry.bucket;
  }

  #table(nowUs: number): BucketTable {
    return {
      get: (key) => this.#read(key, nowUs),
      set: (key, bucket, timeToFullUs) => {
        this.#buckets.set(key, { bucket, expiresUs: nowUs + timeToFullUs });
      },
      delete: (key) => void this.#buckets.delete(key),
    };
  }
}
