import type { AttemptOutcome } from "../core/calls/attempt-outcome.js";

/** Result of an attempt: a value, or what was thrown. */
export type Settled<T> =
  | { readonly isError: false; readonly value: T }
  | { readonly isError: true; readonly error: unknown };

/** Returns the outcome of an attempt. Each adapter has its own. */
export type Classify<T> = (settled: Settled<T>) => AttemptOutcome;
