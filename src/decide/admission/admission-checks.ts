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
  /** Whether critical requests pass this check regardless of its result. */
  readonly sparesCritical: boolean;
  refuses(visit: AdmittedRequest, nowMs: number): boolean;
}

/** Dependencies of a service's checks. */
export interface CheckParts {
  readonly policy: AdmissionPolicy;
  /** Each is undefined if the policy omits its block. */
  readonly gate: Gate | undefined;
  readonly throttles: Throttles | undefined;
  readonly health: ServiceHealth | undefined;
  readonly keyed: PermitsByKey | undefined;
  /** Key of a request in `keyed`. */
  readonly keyOf: (request: AdmissionRequest) => string;
  /** Uniform in [0, 1). */
  readonly draw: () => number;
  /** Whether this process is overloaded. */
  readonly isOverloaded: () => boolean;
}

/**
 * Returns all checks that may refuse a request before it asks for a permit, in order of evaluation.
 * Cheap checks come first, so that a flood is refused at the lowest cost. A refusal hides later
 * checks that would also refuse. Blocks that the policy omits have no check.
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

/** If `ownOverload` is `allow`, requests pass before this check is reached; but see `dryRun`. */
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

/** Checks of the expected wait. The last one: whether it leaves the caller enough time. */
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
 * Checks by class, at the load without the request: first permits in use, then all other signals.
 * Critical requests are not refused because of permits in use: they get the last permits, and if
 * none is free, their place in the queue.
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
  // Permits in use were checked above. Only a mean includes them again.
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

/** Computes the caller's hash, which costs more than the rest, only near a threshold. */
function shedsAt(thresholds: ShedThresholds, visit: AdmittedRequest, loadRatio: number): boolean {
  const { priority } = visit;
  const { softRatio, hardRatio } = thresholds[priority];
  if (loadRatio <= softRatio && loadRatio < hardRatio) return false;
  return sheds(thresholds, { priority, loadRatio, callerHashRatio: visit.callerHashRatio });
}

/** The fraction of requests that the algorithm `latencyShed` refuses. */
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
