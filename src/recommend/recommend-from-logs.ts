import type { PolicyText } from "../policy/parse.js";
import { BudgetLog } from "./budget-log.js";
import { type BudgetProposal, proposeBudget } from "./budget-proposal.js";
import { editBudgets } from "./edit-budgets.js";
import { joinServices } from "./join-services.js";
import {
  observeDemand,
  type RecommendedPolicy,
  type RecommendInput,
  recommendLimits,
} from "./recommend.js";
import { noLimits } from "./recommendation.js";
import { ServiceLog } from "./services/service-log.js";

/** Maximum part of unreadable lines. With more, it is another log or another format. */
export const unreadableRatioMax = 0.05;

/** Input for recommendations from logs. */
interface LogRecommendInput extends RecommendInput {
  /** Texts of the policy without the additions in `sources`. */
  readonly given: readonly PolicyText[];
  /** Whether optional settings of services are written, too. */
  readonly isFixed: boolean;
  /** The only wanted kind; undefined: both. */
  readonly only?: "limits" | "services" | undefined;
  /** The names of `LoggedRequest.headers`. */
  readonly headers: readonly string[];
  /** Whether recommendations for a service are wanted. */
  readonly isChosen: (service: string) => boolean;
}

/** Recommends limits for callers and settings for services from the same logs. */
export async function recommendFromLogs(input: LogRecommendInput): Promise<RecommendedPolicy> {
  const { policy, given, isFixed, isChosen, only, readLogs } = input;
  const services = new ServiceLog(policy);
  const budgets = new BudgetLog(policy, input.headers);
  let isFirstPass = true;
  const reading: RecommendInput = {
    ...input,
    readLogs: (take) => {
      const isFirst = isFirstPass;
      isFirstPass = false;
      return readLogs((request) => {
        if (isFirst) {
          services.take(request);
          budgets.take(request);
        }
        take(request);
      });
    },
  };
  const recommended =
    only === "services" ? await readWithoutLimits(reading) : await recommendLimits(reading);
  if (recommended.kind === "problem") return recommended;
  const observations = only === "limits" ? [] : services.finish();
  const chosen = observations.filter(({ service }) => isChosen(service));
  const observed = { services: chosen, proxies: {}, notEnough: [] };
  // An added rule without a limit must not be written.
  const limits = recommended.recommendation;
  const sources = limits.proposals.length > 0 ? recommended.sources : given;
  const limited = { kind: "recommended", recommendation: limits, sources } as const;
  const joined = joinServices(limited, observed, { policy, isFixed });
  if (joined.kind === "problem") return joined;
  const { recommendation } = joined;
  // Limits of callers do not need durations.
  const isExpected = only !== "limits" && recommendation.demands.length === 0;
  const warnings = [...recommendation.warnings, ...services.warnings(isExpected)];
  if (only !== undefined) return { ...joined, recommendation: { ...recommendation, warnings } };
  const { prices } = policy;
  const amounts: BudgetProposal[] = [];
  const notEnough = [...recommendation.notEnough];
  for (const observed of budgets.finish()) {
    const found = proposeBudget(observed, { prices, ...input.options });
    if (found.kind === "proposed") amounts.push(found.proposal);
    else notEnough.push({ subject: `budget ${observed.budget.name}`, missing: found.missing });
  }
  const edited = editBudgets(joined.sources, amounts);
  if (edited.kind === "problem") return edited;
  return {
    kind: "recommended",
    recommendation: {
      ...recommendation,
      budgets: amounts,
      notEnough,
      warnings: [...warnings, ...budgets.warnings()],
    },
    sources: edited.sources,
  };
}

/** Reads the logs once to check whether their order can be trusted, without fits or replays. */
async function readWithoutLimits(input: RecommendInput): Promise<RecommendedPolicy> {
  const observed = await observeDemand(input);
  if ("kind" in observed) return observed;
  return { kind: "recommended", recommendation: noLimits, sources: input.sources };
}
