import type { Rule } from "../core/limits/limit.js";
import type { Policy } from "../policy/policy.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import type { RecommendedPolicy } from "./recommend.js";
import type { NotEnoughData } from "./recommendation.js";
import type { ObservedRule } from "./rule-observer.js";
import { editServices } from "./services/edit-services.js";
import type { EnvoyPeaks, ServiceObservations } from "./services/service-observations.js";
import { recommendOverload, recommendService } from "./services/service-proposal.js";

/** Observations of a source, and subjects with too few of them. */
export interface SourceObservations {
  readonly services: readonly ServiceObservations[];
  /** Maximum values of any proxy. */
  readonly proxies: EnvoyPeaks;
  readonly notEnough: readonly NotEnoughData[];
}

/** Services and rules to observe. */
export interface StepSubjects {
  readonly services: readonly ServicePolicy[];
  /** Rules with limits. */
  readonly rules: readonly Rule[];
}

/** Observations of services, and of rules whose hits the source counts in steps. */
export interface StepObservations extends SourceObservations {
  readonly rules: readonly ObservedRule[];
}

/** Adds the recommendations for services to a recommendation and to the policy's texts. */
export function joinServices(
  { recommendation, sources }: Extract<RecommendedPolicy, { kind: "recommended" }>,
  { services: observed, proxies, notEnough }: SourceObservations,
  { policy, isFixed }: { readonly policy: Policy; readonly isFixed: boolean },
): RecommendedPolicy {
  const services = observed.flatMap((observations) => {
    const found = policy.serviceIndex.named(observations.service);
    return found === undefined ? [] : [recommendService(observations, found.service)];
  });
  const overload = recommendOverload(proxies, policy.proxies.overload);
  const edited = editServices(sources, { services, overload, isFixed });
  if (edited.kind === "problem") return edited;
  return {
    kind: "recommended",
    recommendation: {
      ...recommendation,
      services,
      overload,
      notEnough: [...recommendation.notEnough, ...notEnough],
    },
    sources: edited.sources,
  };
}
