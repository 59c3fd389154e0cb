import type { PolicyText } from "../policy/parse.js";
import { joinServices } from "./join-services.js";
import { type RecommendedPolicy, type RecommendInput, recommendLimits } from "./recommend.js";
import { noLimits } from "./recommendation.js";
import { ServiceLog } from "./services/service-log.js";

/** What logs are asked for. */
interface LogRecommendInput extends RecommendInput {
  /** The texts of the policy without what `sources` has more. */
  readonly given: readonly PolicyText[];
  /** Whether the settings of services are written that are optional. */
  readonly isFixed: boolean;
  /** What alone is wanted; undefined: both. */
  readonly only?: "limits" | "services" | undefined;
  /** Whether numbers of a service are wanted. */
  readonly isChosen: (service: string) => boolean;
}

/** Recommends limits for callers, and numbers for services, from the same logs. */
export async function recommendFromLogs(input: LogRecommendInput): Promise<RecommendedPolicy> {
  const { policy, given, isFixed, isChosen, only, readLogs } = input;
  const services = new ServiceLog(policy);
  let isFirstPass = true;
  const recommended = await recommendLimits({
    ...input,
    readLogs: (take) => {
      const isFirst = isFirstPass;
      isFirstPass = false;
      return readLogs((request) => {
        if (isFirst) services.take(request);
        take(request);
      });
    },
  });
  if (recommended.kind === "problem") return recommended;
  const observations = only === "limits" ? [] : services.finish();
  const chosen = observations.filter(({ service }) => isChosen(service));
  const observed = { services: chosen, proxies: {}, notEnough: [] };
  // A rule that was added and has no limit is not to be written.
  const limits = only === "services" ? noLimits : recommended.recommendation;
  const sources = limits.proposals.length > 0 ? recommended.sources : given;
  const limited = { kind: "recommended", recommendation: limits, sources } as const;
  const joined = joinServices(limited, observed, { policy, isFixed });
  if (joined.kind === "problem") return joined;
  const { recommendation } = joined;
  // Who looks for limits of callers needs no durations.
  const isExpected = only !== "limits" && recommendation.demands.length === 0;
  const warnings = [...recommendation.warnings, ...services.warnings(isExpected)];
  return { ...joined, recommendation: { ...recommendation, warnings } };
}
