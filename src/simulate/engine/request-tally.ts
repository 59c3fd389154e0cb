import { type RefusalCause, refusalCauses } from "../../core/admission/refusal.js";
import { TimeHistogram } from "../../core/collections/time-histogram.js";

/** Final outcome of a request. */
export type RequestEnd =
  /** @property isInTime whether its response came before its deadline */
  | { readonly kind: "served"; readonly isInTime: boolean; readonly latencyMs: number }
  | { readonly kind: "refused"; readonly cause: RefusalCause }
  /** The service failed it: its queue was full, or its worker was lost. */
  | { readonly kind: "failed" }
  /** Its caller stopped waiting. */
  | { readonly kind: "abandoned" };

const causeIndex: ReadonlyMap<RefusalCause, number> = new Map(
  refusalCauses.map((cause, i) => [cause, i]),
);

/** Counts of the outcomes of requests. */
export class RequestTally {
  offeredCount = 0;
  attemptCount = 0;
  servedCount = 0;
  lateCount = 0;
  failedCount = 0;
  abandonedCount = 0;
  refusedCount = 0;
  readonly #refusedByCause = new Uint32Array(refusalCauses.length);
  /** Latencies of all served requests, from the first attempt on. */
  readonly latencies = new TimeHistogram();

  /** Counts the end of a request. */
  add(end: RequestEnd): void {
    switch (end.kind) {
      case "served":
        if (end.isInTime) this.servedCount += 1;
        else this.lateCount += 1;
        this.latencies.add(end.latencyMs);
        break;
      case "refused": {
        const index = causeIndex.get(end.cause) ?? 0;
        this.#refusedByCause[index] = (this.#refusedByCause[index] ?? 0) + 1;
        this.refusedCount += 1;
        break;
      }
      case "failed":
        this.failedCount += 1;
        break;
      case "abandoned":
        this.abandonedCount += 1;
        break;
    }
  }

  /** Adds the counts of another tally. */
  merge(other: RequestTally): void {
    this.offeredCount += other.offeredCount;
    this.attemptCount += other.attemptCount;
    this.servedCount += other.servedCount;
    this.lateCount += other.lateCount;
    this.failedCount += other.failedCount;
    this.abandonedCount += other.abandonedCount;
    this.refusedCount += other.refusedCount;
    for (const [i, count] of other.#refusedByCause.entries()) {
      this.#refusedByCause[i] = (this.#refusedByCause[i] ?? 0) + count;
    }
    this.latencies.merge(other.latencies);
  }

  /** Refusals by cause, for causes with any. */
  get refusedByCause(): ReadonlyMap<RefusalCause, number> {
    return new Map(
      refusalCauses.flatMap((cause, i) => {
        const count = this.#refusedByCause[i] ?? 0;
        return count === 0 ? [] : [[cause, count] as const];
      }),
    );
  }

  /** Number of requests without an outcome at the end. */
  get openCount(): number {
    const { servedCount, lateCount, failedCount, abandonedCount, refusedCount } = this;
    return (
      this.offeredCount - servedCount - lateCount - failedCount - abandonedCount - refusedCount
    );
  }
}
