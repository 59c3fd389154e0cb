import { isTooLittle } from "../../core/admission/deadline.js";
import { isOverWaitCap, sigmoidRejectRatio } from "../../core/admission/estimated-wait.js";
import { isExpectedLate } from "../../core/admission/expected-time.js";
import type { Gate } from "../../core/admission/gate.js";
import type { PermitsByKey } from "../../core/admission/permits.js";
import { fullThresholds, type ShedThresholds, sheds } from "../../core/admission/priority.js";
import type { RefusalCause } from "../../core/admission/refusal.js";
import type { AdmissionBlock, AdmissionPolicy } from "../../policy/services/service-admission.js";
import type { AdmissionRequest } from "./admission-call.js";
import type { AdmittedRequest } from "./admitted-request.js";
import type { ServiceHealth } from "./service-health.js";
import type { Throttles } from "./throttles.js";

/** One reason to refuse a request. */
export interface AdmissionCheck {
  /** The block of the policy that it belongs to, for its dry run. */
  readonly block: AdmissionBlock;
  readonly cause: RefusalCause;
  /** Whether critical requests pass it whatever it finds. */
  readonly sparesCritical: boolean;
  refuses(visit: AdmittedRequest, nowMs: number): boolean;
}

/** What the checks of a service look at. */
export interface CheckParts {
  readonly policy: AdmissionPolicy;
  /** Undefined where the policy leaves their blocks out. */
  readonly gate: Gate | undefined;
  readonly throttles: Throttles | undefined;
  readonly health: ServiceHealth | undefined;
  readonly keyed: PermitsByKey | undefined;
  /** A request's key there. */
  readonly keyOf: (request: AdmissionRequest) => string;
  /** Uniform in [0, 1). */
  readonly draw: () => number;
  /** Whether this process has more to do than it can do in time. */
  readonly isOverloaded: () => boolean;
}

/**
 * All reasons to refuse a request before it asks for a permit, in the order in which they are
 * looked at: cheap ones first, so that a flood is answered by what costs least, and a refusal hides
 * what would have refused, too. Blocks that the policy leaves out have no check.
 */
export function createChecks(parts: CheckParts): readonly AdmissionCheck[] {
  return [
    ...overloadChecks(parts),
    ...deadlineChecks(parts),
    ...gateChecks(parts),
    ...throttleChecks(parts),
    ...waitChecks(parts),
    ...shedChecks(parts),
    ...latencyChecks(parts),
    ...keyChecks(parts),
  ];
}

/** Where an own overload lets all pass, nobody gets as far as this; but see `dryRun`. */
function overloadChecks({ policy, isOverloaded }: CheckParts): readonly AdmissionCheck[] {
  if (policy.ownOverload === "allow") return [];
  return [
    {
      block: "load",
      cause: "ownOverload",
      sparesCritical: true,
      refuses: isOverloaded,
    },
  ];
}

function deadlineChecks({ policy: { deadline } }: CheckParts): readonly AdmissionCheck[] {
  if (deadline === undefined) return [];
  return [
    {
      block: "deadline",
      cause: "deadline",
      sparesCritical: false,
      refuses: (visit) => visit.deadline !== undefined && isTooLittle(deadline, visit.deadline),
    },
  ];
}

function gateChecks({ gate, draw }: CheckParts): readonly AdmissionCheck[] {
  if (gate === undefined) return [];
  return [
    { block: "gate", cause: "gate", sparesCritical: true, refuses: () => !gate.passes(draw()) },
  ];
}

function throttleChecks({ throttles, draw }: CheckParts): readonly AdmissionCheck[] {
  if (throttles === undefined) return [];
  return [
    {
      block: "throttle",
      cause: "throttle",
      sparesCritical: true,
      refuses: ({ caller }, nowMs) => throttles.rejects(caller, draw(), nowMs),
    },
  ];
}

/** The wait that a request must expect; last whether it leaves its caller enough time. */
function waitChecks({ policy, draw }: CheckParts): readonly AdmissionCheck[] {
  const { estimatedWait, deadline } = policy;
  const checks: AdmissionCheck[] = [];
  if (estimatedWait !== undefined) {
    checks.push({
      block: "estimatedWait",
      cause: "waitCap",
      sparesCritical: true,
      refuses: (visit, nowMs) => isOverWaitCap(estimatedWait, visit.queueState(nowMs)),
    });
  }
  const sigmoid = estimatedWait?.sigmoid;
  if (sigmoid !== undefined) {
    checks.push({
      block: "estimatedWait",
      cause: "sigmoid",
      sparesCritical: true,
      refuses: (visit, nowMs) => draw() < sigmoidRejectRatio(sigmoid, visit.queueState(nowMs)),
    });
  }
  if (deadline === undefined) return checks;
  return [
    ...checks,
    {
      block: "deadline",
      cause: "deadline",
      sparesCritical: false,
      refuses: (visit, nowMs) => isExpectedLate(visit.pool, visit, nowMs),
    },
  ];
}

/**
 * By class, at the load without the request: first what is in use of the permits, then with all
 * other signals. Critical requests are not refused for what is in use: they get the last permits,
 * and where there is none their place in the queue.
 */
function shedChecks({ policy, health }: CheckParts): readonly AdmissionCheck[] {
  const { shedAt } = policy;
  const checks: AdmissionCheck[] = [];
  if (shedAt !== undefined) {
    checks.push({
      block: "priority",
      cause: "priority",
      sparesCritical: true,
      refuses: (visit, nowMs) =>
        shedsAt(shedAt, visit, visit.pool.occupancyFor(visit.priority, nowMs)),
    });
  }
  if (health === undefined) return checks;
  const thresholds = shedAt ?? fullThresholds;
  // What is in use has been looked at; only a mean needs it once more.
  const isMean = health.settings.combine === "mean";
  return [
    ...checks,
    {
      block: "load",
      cause: "load",
      sparesCritical: false,
      refuses: (visit, nowMs) => {
        const inUseRatio = isMean ? visit.pool.occupancyFor(visit.priority, nowMs) : 0;
        return shedsAt(thresholds, visit, health.signals.ratio(nowMs, inUseRatio));
      },
    },
  ];
}

/** The caller's hash costs more than the rest and is only made where a threshold is near. */
function shedsAt(thresholds: ShedThresholds, visit: AdmittedRequest, loadRatio: number): boolean {
  const { priority } = visit;
  const { softRatio, hardRatio } = thresholds[priority];
  if (loadRatio <= softRatio && loadRatio < hardRatio) return false;
  return sheds(thresholds, { priority, loadRatio, callerHashRatio: visit.callerHashRatio });
}

/** The share that the law `latencyShed` refuses. */
function latencyChecks({ draw }: CheckParts): readonly AdmissionCheck[] {
  return [
    {
      block: "permits",
      cause: "load",
      sparesCritical: true,
      refuses: ({ pool: { law } }, nowMs) =>
        law !== undefined && draw() < (law.shedRatio?.(nowMs) ?? 0),
    },
  ];
}

/** Permits of the caller, the route or the model. */
function keyChecks({ keyed, keyOf }: CheckParts): readonly AdmissionCheck[] {
  if (keyed === undefined) return [];
  return [
    {
      block: "permits",
      cause: "concurrency",
      sparesCritical: false,
      refuses: ({ request }) => !keyed.hasRoom(keyOf(request)),
    },
  ];
}
