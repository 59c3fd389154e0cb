import type { Clock } from "../../src/core/base/clock.js";
import { type ErrorCode, ServiceError } from "../../src/core/base/errors.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import type {
  LimitStore,
  StoredBucket,
  StoreOutcome,
  StoreRequest,
} from "../../src/store/limit-store.js";

/** What the next calls of a `FaultyStore` meet. */
export type Fault =
  | { readonly kind: "none" }
  /** Fails at once, without having charged. */
  | { readonly kind: "reject"; readonly code: ErrorCode }
  /** Charges, but its answers never come: calls fail at their deadline. */
  | { readonly kind: "hang" }
  /** Decides, but says that it granted so many times of each request. */
  | { readonly kind: "claim"; readonly grantedCount: number };

/**
 * A real store behind a fault that a test switches on and off; otherwise the store's own answers.
 */
export class FaultyStore implements LimitStore {
  readonly #inner: LimitStore;
  readonly #clock: Clock;
  fault: Fault = { kind: "none" };
  /** The batches asked for so far, as they arrived. */
  readonly batches: (readonly StoreRequest[])[] = [];

  constructor(inner: LimitStore, clock: Clock) {
    this.#inner = inner;
    this.#clock = clock;
  }

  async take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    this.batches.push(batch);
    if (this.fault.kind === "reject") throw new ServiceError(this.fault.code);
    const outcomes = await this.#inner.take(batch, deadlineMs);
    if (this.fault.kind === "claim") {
      const { grantedCount } = this.fault;
      return outcomes.map((one) =>
        one.kind === "decided" ? { ...one, result: { ...one.result, grantedCount } } : one,
      );
    }
    if (this.fault.kind !== "hang") return outcomes;
    return new Promise((_resolve, reject) => {
      const leftMs = deadlineMs - this.#clock.monotonicMs();
      this.#clock.schedule(leftMs, () => reject(new ServiceError("STORE_TIMEOUT")));
    });
  }

  peek(key: LimitKey, deadlineMs: number): Promise<StoredBucket | undefined> {
    return this.#inner.peek(key, deadlineMs);
  }

  forget(keys: readonly LimitKey[], deadlineMs: number): Promise<number> {
    return this.#inner.forget(keys, deadlineMs);
  }

  async ping(deadlineMs: number): Promise<void> {
    if (this.fault.kind === "reject") throw new ServiceError(this.fault.code);
    await this.#inner.ping(deadlineMs);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
