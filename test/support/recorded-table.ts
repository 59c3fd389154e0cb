import type { Bucket } from "../../src/core/limits/bucket.js";
import type { BucketTable } from "../../src/core/limits/gcra.js";
import type { LimitKey } from "../../src/core/limits/limit.js";

/** A write as the law asked for it. */
export interface Write {
  readonly key: LimitKey;
  /** Absent for a delete. */
  readonly bucket?: Bucket;
  readonly timeToFullUs?: number;
}

/** A bucket table in a map that remembers what was asked of it. */
export class RecordedTable implements BucketTable {
  readonly buckets: Map<LimitKey, Bucket>;
  /** Since the last `takeWrites`. */
  #writes: Write[] = [];

  constructor(buckets: ReadonlyMap<LimitKey, Bucket> = new Map()) {
    this.buckets = new Map(buckets);
  }

  get(key: LimitKey): Bucket | undefined {
    return this.buckets.get(key);
  }

  set(key: LimitKey, bucket: Bucket, timeToFullUs: number): void {
    this.#writes.push({ key, bucket, timeToFullUs });
    this.buckets.set(key, bucket);
  }

  delete(key: LimitKey): void {
    this.#writes.push({ key });
    this.buckets.delete(key);
  }

  /** The writes since the last call. */
  takeWrites(): readonly Write[] {
    const writes = this.#writes;
    this.#writes = [];
    return writes;
  }

  /** A table of its own with the same buckets. */
  copy(): RecordedTable {
    return new RecordedTable(this.buckets);
  }
}
