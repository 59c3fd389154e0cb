import { CallBreaker } from "../core/calls/call-breaker.js";
import type { CallDeadlineSettings } from "../core/calls/call-deadline.js";
import { HedgeDelay } from "../core/calls/hedge-delay.js";
import { RetryBudget } from "../core/calls/retry-budget.js";
import type {
  BreakerOptions,
  DeadlineOptions,
  HedgeOptions,
  RetryOptions,
  ThrottleOptions,
} from "./admission.js";
import type { RetrySettings } from "./call.js";
import { checkNumber, checkWord, count, ratio, timeMs, withDefaults } from "./options.js";

/** Returns throttle settings, with defaults. */
export function throttleSettings(options: ThrottleOptions): Required<ThrottleOptions> {
  return withDefaults<Required<ThrottleOptions>>(options, {
    name: "throttle",
    defaults: { k: 2, memoryMs: 30_000 },
    bounds: { k: { min: 1, max: 1_000 }, memoryMs: timeMs(1) },
  });
}

/** Creates a circuit breaker, with defaults. */
export function createCallBreaker(options: BreakerOptions): CallBreaker {
  return new CallBreaker(
    withDefaults<Required<BreakerOptions>>(options, {
      name: "breaker",
      defaults: {
        failureRatio: 0.5,
        callsMin: 20,
        windowMs: 10_000,
        openMs: 5_000,
        probesCount: 3,
      },
      bounds: {
        failureRatio: ratio(0.001),
        callsMin: count(1),
        windowMs: timeMs(10),
        openMs: timeMs(1),
        probesCount: count(1),
      },
    }),
  );
}

const jitters = ["law", "full", "decorrelated"] as const;

/** Returns retry settings, with defaults. */
export function retrySettings(options: RetryOptions): RetrySettings {
  const settings = withDefaults<Required<Omit<RetryOptions, "budgetRatio" | "budgetPerSecondMin">>>(
    options,
    {
      name: "retry",
      defaults: {
        attemptsMax: 3,
        jitter: "full",
        baseMs: 100,
        maxMs: 10_000,
        retryAfterMsMax: 60_000,
      },
      bounds: {
        attemptsMax: count(1),
        baseMs: timeMs(1),
        maxMs: timeMs(1),
        retryAfterMsMax: timeMs(0),
      },
    },
  );
  checkWord("retry.jitter", settings.jitter, jitters);
  return settings;
}

/** Creates a retry budget, with defaults. */
export function createBudget(
  options: Pick<RetryOptions, "budgetRatio" | "budgetPerSecondMin">,
): RetryBudget {
  return new RetryBudget(
    withDefaults<Required<Pick<RetryOptions, "budgetRatio" | "budgetPerSecondMin">>>(options, {
      name: "retry",
      defaults: { budgetRatio: 0.1, budgetPerSecondMin: 1 },
      bounds: { budgetRatio: { min: 0, max: 1_000 }, budgetPerSecondMin: { min: 0, max: 1e6 } },
    }),
  );
}

/** Creates a hedge delay, with defaults. */
export function createHedgeDelay(options: HedgeOptions): HedgeDelay {
  return new HedgeDelay(
    withDefaults<Required<HedgeOptions>>(options, {
      name: "hedge",
      defaults: { quantile: 0.95, afterMsMin: 10 },
      bounds: { quantile: { min: 0.001, max: 0.999_999 }, afterMsMin: timeMs(0) },
    }),
  );
}

/** Returns the time limits of calls, with defaults. */
export function deadlineSettings(
  options: DeadlineOptions,
): CallDeadlineSettings & { readonly timeoutMs: number | undefined } {
  const { header, timeoutMs, ...times } = options;
  if (timeoutMs !== undefined) checkNumber("deadline.timeoutMs", timeoutMs, timeMs(0));
  const checked = withDefaults<Required<Pick<DeadlineOptions, "remainingMsMin" | "marginMs">>>(
    times,
    {
      name: "deadline",
      defaults: { remainingMsMin: 5, marginMs: 0 },
      bounds: { remainingMsMin: timeMs(0), marginMs: timeMs(0) },
    },
  );
  const name = header === undefined ? undefined : checkedHeaderName("deadline.header", header);
  return { ...checked, timeoutMs, header: name };
}

/**
 * Returns a header name. It must be lower case, as in HTTP/2.
 *
 * Source: RFC 9110, section 5.6.2 (token).
 */
export function checkedHeaderName(option: string, name: string): string {
  if (/^[!#$%&'*+.^_`|~0-9a-z-]{1,256}$/.test(name)) return name;
  throw new RangeError(`${option} must be the name of a header, in lower case`);
}
