import type { Charge } from "../../core/limits/bucket.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { BatchOutcome, PendingRequest } from "./batcher.js";
import type { ObservedCall } from "./decision-observer.js";
import type { PreparedQuery } from "./prepared-query.js";
import type { Hits, RateLimitQuery } from "./query.js";

/** One call: how much it asks for, until when, and where its answer goes. */
export interface DecisionCall {
  readonly hits: Hits;
  /** When the caller stops waiting, on the monotonic clock; Infinity when unknown. */
  readonly deadlineMs: number;
  /** What it asks, in whole; absent where nobody wants to know (`Decider.wantsQuery`). */
  readonly query?: RateLimitQuery | undefined;
  /** The answer. Either this or `failed` is told exactly once, maybe before `ask` returns. */
  decided(verdict: Verdict): void;
  /** @param thrown what `Decider.decidePrepared` throws, or anything else for a bug */
  failed(thrown: unknown): void;
}

/** The part of a caller's remaining time that a store call may use. */
const callerBudgetRatio = 0.6;

/** Takes the store's answer for a decision. */
export type ResolveDecision = (decision: Decision, outcome: BatchOutcome, index: number) => void;

/** A call on its way through the store. */
export class Decision implements PendingRequest {
  readonly prepared: PreparedQuery;
  readonly charges: readonly Charge[];
  readonly call: DecisionCall;
  /** What it takes while it is in work, in bytes: see `Pressure.begin`. */
  readonly bytes: number;
  readonly startMs: number;
  /** When the store's part of the caller's time is over. */
  readonly deadlineMs: number;
  /** Whether a refusal leaves nothing behind, so that it may be remembered. */
  readonly isPlain: boolean;
  /** Undefined where nobody looks at this one. */
  /** Those who want to see it. */
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
    // Other costs than one change nothing of that, unless they are none.
    this.isPlain = prepared.isPlain && (this.isOneEach || charges.every(({ cost }) => cost > 0));
    this.#settle = settle;
  }

  /** Only calls for one hit of repeatable limits meet others. */
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

/** The charges of a call: the prepared ones for one hit each, copies with their cost otherwise. */
export function chargesFor({ asks, charges }: PreparedQuery, hits: Hits): readonly Charge[] {
  const isOneEach = typeof hits === "number" ? hits === 1 : hits.every((one) => one === 1);
  if (isOneEach) return charges;
  return asks.map(({ charge, descriptorIndex }) => {
    const cost = typeof hits === "number" ? hits : (hits[descriptorIndex] ?? 1);
    return { ...charge, cost };
  });
}
