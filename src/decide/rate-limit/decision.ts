import type { Charge } from "../../core/limits/bucket.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { BatchOutcome, PendingRequest } from "./batcher.js";
import type { DecisionTrace } from "./counters.js";
import type { ObservedCall } from "./decision-observer.js";
import type { PreparedQuery } from "./prepared-query.js";
import type { Hits, RateLimitQuery } from "./query.js";

/** One call: its cost, its deadline, and the receiver of its response. */
export interface DecisionCall {
  readonly hits: Hits;
  /** When the caller stops waiting, on the monotonic clock; Infinity if unknown. */
  readonly deadlineMs: number;
  /**
   * Whether limits with `over: delay` deny this request instead, because its caller cannot delay
   * any more requests. Default false.
   */
  readonly refusesAtOnce?: boolean;
  /** The complete query. Absent unless an observer needs it (`Decider.wantsQuery`). */
  readonly query?: RateLimitQuery | undefined;
  /** Undefined unless the call's trace is recorded. */
  readonly trace?: DecisionTrace | undefined;
  /**
   * Receives the response. Exactly one of `decided` and `failed` is called, possibly before `ask`
   * returns.
   */
  decided(verdict: Verdict): void;
  /**
   * @param thrown an error that `Decider.decidePrepared` documents, or any other value for a bug
   */
  failed(thrown: unknown): void;
}

/** The fraction of a caller's remaining time that a store call may use. */
const callerBudgetRatio = 0.6;

/** Resolves a decision with a store result. */
export type ResolveDecision = (decision: Decision, outcome: BatchOutcome, index: number) => void;

/** A call that waits for the store. */
export class Decision implements PendingRequest {
  readonly prepared: PreparedQuery;
  readonly charges: readonly Charge[];
  readonly call: DecisionCall;
  /** Its size while it is in flight, in bytes: see `Pressure.begin`. */
  readonly bytes: number;
  readonly startMs: number;
  /** When the part of the caller's time that the store may use ends. */
  readonly deadlineMs: number;
  /** Whether a denial charges nothing, so that it can be cached. */
  readonly isPlain: boolean;
  /** The observers that follow this call. */
  readonly observed: readonly ObservedCall[];
  readonly #settle: ResolveDecision;
  #isSettled = false;

  constructor(
    settle: ResolveDecision,
    { prepared, charges, call, bytes, startMs, observed }: DecisionParts,
  ) {
    this.prepared = prepared;
    this.charges = charges;
    this.call = call;
    this.bytes = bytes;
    this.startMs = startMs;
    this.observed = observed;
    this.deadlineMs = startMs + (call.deadlineMs - startMs) * callerBudgetRatio;
    // A cost other than one has no effect on this, unless it is zero.
    this.isPlain = prepared.isPlain && (this.isOneEach || charges.every(({ cost }) => cost > 0));
    this.#settle = settle;
  }

  /** Only calls with a cost of one against repeatable limits are combined. */
  get isCoalescing(): boolean {
    return this.prepared.isRepeatable && this.isOneEach;
  }

  get isOneEach(): boolean {
    return this.charges === this.prepared.charges;
  }

  settle(outcome: BatchOutcome, index: number): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#settle(this, outcome, index);
  }
}

type DecisionParts = Pick<
  Decision,
  "prepared" | "charges" | "call" | "bytes" | "startMs" | "observed"
>;

/**
 * The charges of a call: the prepared ones if each cost is one, otherwise copies with their costs.
 *
 * @param delayUsMax maximum delay of the request, in microseconds
 */
export function chargesFor(
  { asks, charges, delayUs }: PreparedQuery,
  hits: Hits,
  delayUsMax = Number.POSITIVE_INFINITY,
): readonly Charge[] {
  const isOneEach = typeof hits === "number" ? hits === 1 : hits.every((one) => one === 1);
  const isDelayedLess = delayUs > delayUsMax;
  if (isOneEach && !isDelayedLess) return charges;
  return asks.map(({ charge, descriptorIndex }) => {
    const cost = typeof hits === "number" ? hits : (hits[descriptorIndex] ?? 1);
    if (!isDelayedLess || charge.delayUs === undefined) return { ...charge, cost };
    return { ...charge, cost, delayUs: delayUsMax };
  });
}
