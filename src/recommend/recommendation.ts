import type { BudgetProposal } from "./budget-proposal.js";
import type { CallerDemand } from "./demand.js";
import type { Proposal } from "./proposal.js";
import type { ServiceRecommendation, ServiceSetting } from "./services/service-recommendation.js";

/** Too little was observed to propose something. */
export interface NotEnoughData {
  /** What nothing is proposed for: `shop/user`. */
  readonly subject: string;
  /** Sentences: what there is, and how much more is needed. */
  readonly missing: readonly string[];
}

/** All that is recommended, and all that is not. */
export interface Recommendation {
  readonly demands: readonly CallerDemand[];
  readonly proposals: readonly Proposal[];
  readonly notEnough: readonly NotEnoughData[];
  /** What is recommended for services, beside their limits. */
  readonly services: readonly ServiceRecommendation[];
  /** Below `proxies`. */
  readonly overload: readonly ServiceSetting[];
  readonly budgets: readonly BudgetProposal[];
  /** Sentences about what was read, and what it cannot tell. */
  readonly warnings: readonly string[];
}

/** Whether something is proposed. */
export function proposes({ proposals, services, overload, budgets }: Recommendation): boolean {
  return (
    proposals.length + overload.length + budgets.length > 0 ||
    services.some(({ settings }) => settings.length > 0)
  );
}

/** One without limits. */
export const noLimits: Recommendation = {
  demands: [],
  proposals: [],
  notEnough: [],
  services: [],
  overload: [],
  budgets: [],
  warnings: [],
};
