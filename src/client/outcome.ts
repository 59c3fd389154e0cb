import type { AttemptOutcome } from "../core/calls/attempt-outcome.js";

/** What came back of an attempt: a value, or what was thrown. */
export type Settled<T> =
  | { readonly isError: false; readonly value: T }
  | { readonly isError: true; readonly error: unknown };

/** Tells what an attempt came to; each adapter has its own. */
export type Classify<T> = (settled: Settled<T>) => AttemptOutcome;
