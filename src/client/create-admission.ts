import { Throttle } from "../core/admission/throttle.js";
import type {
  Admission,
  AdmissionOptions,
  AdmissionSnapshot,
  ThrottleOptions,
} from "./admission.js";
import { Call, type CallCounts, type CallParts } from "./call.js";
import { CallPermits } from "./permits.js";
import {
  createBudget,
  createCallBreaker,
  createHedgeDelay,
  deadlineSettings,
  headerName,
  retrySettings,
  throttleSettings,
} from "./settings.js";
import { backgroundClock, callClock, callRandom } from "./system.js";
import { Timers } from "./timers.js";

/**
 * Admission of the calls to one service: each call goes through its deadline, the circuit breaker,
 * the throttle, and a permit or the queue. What its attempt comes to teaches all of them, and it is
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
  const { name, clock = callClock, random = callRandom, hedge, throttle, breaker } = options;
  const deadline = deadlineSettings(options.deadline ?? {});
  const budget = options.retry ?? options.hedge;
  return {
    name,
    clock,
    random,
    timers: new Timers(clock),
    idleTimers: new Timers(options.clock ?? backgroundClock),
    permits: new CallPermits(options, clock),
    throttles: throttle && throttlesOf(throttle),
    breaker: breaker && createCallBreaker(breaker),
    retry: options.retry && retrySettings(options.retry),
    budget: budget && createBudget(options.retry ?? {}),
    hedge: hedge && createHedgeDelay(hedge),
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

/** One for each class, as a service refuses the lower ones first. */
function throttlesOf(options: ThrottleOptions): CallParts["throttles"] {
  const settings = throttleSettings(options);
  const create = (): Throttle => new Throttle(settings);
  return { critical: create(), high: create(), normal: create(), low: create() };
}
