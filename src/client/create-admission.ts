import { Throttle } from "../core/admission/throttle.js";
import { CallBreaker } from "../core/calls/call-breaker.js";
import type { CallDeadlineSettings } from "../core/calls/call-deadline.js";
import { HedgeDelay } from "../core/calls/hedge-delay.js";
import { RetryBudget } from "../core/calls/retry-budget.js";
import type {
  Admission,
  AdmissionOptions,
  AdmissionSnapshot,
  BreakerOptions,
  DeadlineOptions,
  HedgeOptions,
  RetryOptions,
  ThrottleOptions,
} from "./admission.js";
import { Call, type CallCounts, type CallParts, type RetrySettings } from "./call.js";
import { checkNumber, checkWord, count, ratio, timeMs, withDefaults } from "./options.js";
import { CallPermits } from "./permits.js";
import { callClock, systemClock, systemRandom } from "./system.js";
import { Timers } from "./timers.js";

/**
 * Admission of the calls to one service: each call goes through its deadline, the circuit breaker,
 * the throttle, and a permit or the queue; what its attempt comes to teaches all of them; then it is
 * repeated as far as the retry budget goes. A part whose options are absent is not there.
 *
 * Make one for each service that you call, and keep it.
 *
 * @throws RangeError that names an option which is out of bounds
 */
export function createAdmission(options: AdmissionOptions): Admission {
  const parts = callParts(options);
  return {
    name: parts.name,
    clock: parts.clock,
    run: (work, callOptions = {}) =>
      new Promise((resolve, reject) => {
        new Call(parts, { work, options: callOptions, resolve, reject }).begin();
      }),
    snapshot: () => snapshotOf(parts),
  };
}

/** What the calls of an admission share. */
export function callParts(options: AdmissionOptions): CallParts {
  const { name, clock = callClock, random = systemRandom, hedge, throttle, breaker } = options;
  const deadline = deadlineSettings(options.deadline ?? {});
  const budget = options.retry ?? options.hedge;
  return {
    name,
    clock,
    random,
    timers: new Timers(clock),
    idleTimers: new Timers(options.clock ?? systemClock),
    permits: new CallPermits(options, clock),
    throttles: throttle && throttlesOf(throttle),
    breaker: breaker && createCallBreaker(breaker),
    retry: options.retry && retrySettings(options.retry),
    budget: budget && createBudget(options.retry ?? {}),
    hedge: hedge && hedgeDelay(hedge),
    deadline,
    timeoutMs: deadline.timeoutMs,
    priorityHeader: headerName("priorityHeader", options.priorityHeader ?? "x-headgate-priority"),
    counts: noCounts(),
  };
}

function noCounts(): CallCounts {
  return {
    calls: 0,
    attempts: 0,
    retries: 0,
    hedges: 0,
    budgetRefused: 0,
    outcomes: { served: 0, failed: 0, overloaded: 0, cancelled: 0 },
    refused: {
      concurrency: 0,
      queueFull: 0,
      queueTimeout: 0,
      throttle: 0,
      breakerOpen: 0,
      deadline: 0,
    },
  };
}

function snapshotOf({ breaker, budget, clock, counts, permits, throttles }: CallParts) {
  const nowMs = clock.monotonicMs();
  const ratios = Object.values(throttles ?? {}).map((one) => one.rejectRatio(nowMs));
  return {
    limit: permits.limit,
    inFlight: permits.inUseCount,
    waiting: permits.waitingCount,
    throttleRatio: Math.max(0, ...ratios),
    breaker: breaker?.state(nowMs) ?? "closed",
    budgetLeft: budget?.left(nowMs) ?? Number.POSITIVE_INFINITY,
    callsCount: counts.calls,
    attemptsCount: counts.attempts,
    retriesCount: counts.retries,
    hedgesCount: counts.hedges,
    budgetRefusedCount: counts.budgetRefused,
    outcomes: { ...counts.outcomes },
    refused: { ...counts.refused },
  } satisfies AdmissionSnapshot;
}

/** Settings of a throttle, with its defaults. */
export function throttleSettings(options: ThrottleOptions): Required<ThrottleOptions> {
  return withDefaults<Required<ThrottleOptions>>(options, {
    name: "throttle",
    defaults: { k: 2, memoryMs: 30_000 },
    bounds: { k: { min: 1, max: 1_000 }, memoryMs: timeMs(1) },
  });
}

/** One for each class, as a service refuses the lower ones first. */
function throttlesOf(options: ThrottleOptions): CallParts["throttles"] {
  const settings = throttleSettings(options);
  const create = (): Throttle => new Throttle(settings);
  return { critical: create(), high: create(), normal: create(), low: create() };
}

/** A circuit breaker with its defaults. */
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

/** How calls are repeated, with its defaults. */
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

/** A retry budget with its defaults. */
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

function hedgeDelay(options: HedgeOptions): HedgeDelay {
  return new HedgeDelay(
    withDefaults<Required<HedgeOptions>>(options, {
      name: "hedge",
      defaults: { quantile: 0.95, afterMsMin: 10 },
      bounds: { quantile: { min: 0.001, max: 0.999_999 }, afterMsMin: timeMs(0) },
    }),
  );
}

function deadlineSettings(
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
  const name = header === undefined ? undefined : headerName("deadline.header", header);
  return { ...checked, timeoutMs, header: name };
}

/** Source: RFC 9110, section 5.6.2 (token); in lower case, as HTTP/2 has names. */
function headerName(option: string, name: string): string {
  if (/^[!#$%&'*+.^_`|~0-9a-z-]{1,256}$/.test(name)) return name;
  throw new RangeError(`${option} must be the name of a header, in lower case`);
}
