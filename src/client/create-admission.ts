import { systemClock } from "../host/clock.js";
import type { Admission, AdmissionOptions, AdmissionSnapshot } from "./admission.js";
import { type AdmissionCallParts, Call } from "./call.js";
import { callParts } from "./call-parts.js";

/**
 * Creates the admission of calls to one service. Each call goes through its deadline, the circuit
 * breaker, the throttle, and a permit or the queue. The outcome of its attempt teaches all of them,
 * and the attempt is retried as far as the retry budget allows. A part without options is disabled.
 *
 * Create one for each service that you call, and keep it.
 *
 * @throws RangeError that names the option that is out of bounds
 */
export function createAdmission(options: AdmissionOptions): Admission {
  const parts = callParts(options);
  return {
    name: parts.name,
    clock: options.clock ?? systemClock,
    run: (work, callOptions = {}) =>
      new Promise((resolve, reject) => {
        new Call(parts, { work, options: callOptions, resolve, reject }).begin();
      }),
    snapshot: () => snapshotOf(parts),
  };
}

function snapshotOf({ breaker, budget, clock, counts, permits, throttles }: AdmissionCallParts) {
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
