import type { Clock, Random } from "../core/base/clock.js";
import type { Attempt, CallOptions, RetryOptions } from "./admission.js";
import { Call } from "./call.js";
import { callParts } from "./call-parts.js";
import type { Classify } from "./outcome.js";
import type { ClientRetryBudget } from "./parts.js";

/** How `retry` repeats work. By default, `classify` allows a retry of everything that rejects. */
export interface RetryCallOptions<T>
  extends Omit<RetryOptions, "budgetRatio" | "budgetPerSecondMin">,
    CallOptions<T> {
  /** Shared by all calls to one service. Default: each call may use all of its attempts */
  readonly budget?: ClientRetryBudget;
  /** For tests. Default: the process's own */
  readonly clock?: Clock;
  /** For tests. Default: the process's own */
  readonly random?: Random;
}

/**
 * Repeats work until it is served or its attempts are used up, with the waits, deadlines and budget
 * of an admission, but without its other parts.
 *
 * @throws RangeError that names the option that is out of bounds; otherwise as `Admission.run`
 */
export async function retry<T>(
  work: (attempt: Attempt) => Promise<T>,
  options: RetryCallOptions<T> = {},
): Promise<T> {
  const { budget, clock, random, classify = servedOrRetriable, ...others } = options;
  const tests = { ...(clock && { clock }), ...(random && { random }) };
  const parts = { ...callParts({ name: "retry", retry: options, ...tests }), budget };
  return new Promise((resolve, reject) => {
    new Call(parts, { work, options: { ...others, classify }, resolve, reject }).begin();
  });
}

const servedOrRetriable: Classify<unknown> = ({ isError }) =>
  isError ? { kind: "failed", retriable: "always" } : { kind: "served", retriable: "never" };
