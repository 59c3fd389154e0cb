import type { Clock } from "../../core/base/clock.js";
import { type Bucket, type Charge, retryAfterUs } from "../../core/limits/bucket.js";
import { type BucketTable, decideRequest } from "../../core/limits/gcra.js";
import { limitKey } from "../../core/limits/key.js";
import type { LimitKey } from "../../core/limits/limit.js";

/** Maximum number of callers with a bucket of their own. Further ones share one bucket. */
export const pacedCallersMax = 10_000;

/** The rate of calls that are allowed. */
interface CallPaceRate {
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * The admin API's own rate limit for each caller (GCRA), in this process's memory.
 */
export class CallPace {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #rate: CallPaceRate;
  readonly #buckets = new Map<LimitKey, { readonly bucket: Bucket; readonly fullUs: number }>();

  constructor(clock: Pick<Clock, "monotonicMs">, rate: CallPaceRate) {
    this.#clock = clock;
    this.#rate = rate;
  }

  /** Charges a call of a caller. Returns how long to wait, in milliseconds; 0: it is allowed. */
  take(caller: string): number {
    const nowUs = Math.floor(this.#clock.monotonicMs() * 1_000);
    const charge = this.#charge(this.#keyOf(caller, nowUs));
    const table: BucketTable = {
      get: (key) => this.#buckets.get(key)?.bucket,
      set: (key, bucket, timeToFullUs) => {
        this.#buckets.set(key, { bucket, fullUs: nowUs + timeToFullUs });
      },
      delete: (key) => this.#buckets.delete(key),
    };
    const { isDenied, results } = decideRequest([charge], table, nowUs);
    const [result] = results;
    if (!isDenied || result === undefined) return 0;
    return Math.max(1, Math.ceil((retryAfterUs(charge, result.bucket, nowUs) ?? 0) / 1_000));
  }

  #keyOf(caller: string, nowUs: number): LimitKey {
    const key = keyOf("caller", caller);
    if (this.#buckets.has(key) || this.#buckets.size < pacedCallersMax) return key;
    for (const [known, { fullUs }] of this.#buckets) {
      if (fullUs <= nowUs) this.#buckets.delete(known);
    }
    return this.#buckets.size < pacedCallersMax ? key : keyOf("others", "");
  }

  #charge(key: LimitKey): Charge {
    const { perSecond, burst } = this.#rate;
    return {
      key,
      hits: perSecond,
      periodUs: 1_000_000,
      burst,
      cost: 1,
      role: "enforce",
      isRefund: false,
      peekExhausted: false,
    };
  }
}

function keyOf(kind: string, caller: string): LimitKey {
  return limitKey("admin", [{ key: kind, value: caller }], { periodUs: 1_000_000 });
}
