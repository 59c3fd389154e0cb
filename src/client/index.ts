export type { Priority } from "../core/admission/priority.js";
export type { Clock, Random } from "../core/base/clock.js";
export type { AttemptOutcome, OutcomeKind, Retriability } from "../core/calls/attempt-outcome.js";
export { admissionFetch, type FetchOptions } from "./adapters/fetch.js";
export type {
  Admission,
  AdmissionOptions,
  AdmissionSnapshot,
  Attempt,
  BreakerOptions,
  CallOptions,
  ConcurrencyOptions,
  DeadlineOptions,
  HedgeOptions,
  QueueOptions,
  RetryOptions,
  ThrottleOptions,
} from "./admission.js";
export { type AdmissionCause, AdmissionError } from "./admission-error.js";
export { createAdmission } from "./create-admission.js";
export {
  type AcquireOptions,
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type LimiterSnapshot,
  type Permit,
} from "./limiter.js";
export type { Classify, Settled } from "./outcome.js";
export {
  type CircuitBreaker,
  type ClientRetryBudget,
  type ClientThrottle,
  createBreaker,
  createRetryBudget,
  createThrottle,
  type RetryBudgetOptions,
} from "./parts.js";
export { type RetryCallOptions, retry } from "./retry.js";
export {
  createWindowLimiter,
  type RateLimitControl,
  type RateLimited,
  type WindowLimiter,
  type WindowLimiterOptions,
  type WindowSnapshot,
} from "./window-limiter.js";
