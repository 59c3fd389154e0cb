import { defaultPriorityHeader } from "../core/admission/priority.js";
import { Throttle } from "../core/admission/throttle.js";
import { systemClock, systemRandom } from "../host/clock.js";
import type { AdmissionOptions, ThrottleOptions } from "./admission.js";
import type { AdmissionCallParts, CallCounts } from "./call.js";
import { CallPermits } from "./permits.js";
import {
  checkedHeaderName,
  createBudget,
  createCallBreaker,
  createHedgeDelay,
  deadlineSettings,
  retrySettings,
  throttleSettings,
} from "./settings.js";
import { callClock } from "./system.js";
import { Timers } from "./timers.js";

/** Returns the parts that the calls of an admission share. */
export function callParts(options: AdmissionOptions): AdmissionCallParts {
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
    hedge: hedge && createHedgeDelay(hedge),
    deadline,
    timeoutMs: deadline.timeoutMs,
    priorityHeader: checkedHeaderName(
      "priorityHeader",
      options.priorityHeader ?? defaultPriorityHeader,
    ),
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

/** Creates a throttle for each class, because a service refuses the lower ones first. */
function throttlesOf(options: ThrottleOptions): AdmissionCallParts["throttles"] {
  const settings = throttleSettings(options);
  const create = (): Throttle => new Throttle(settings);
  return { critical: create(), high: create(), normal: create(), low: create() };
}
