import type { BudgetProposal } from "./budget-proposal.js";
import type { CallerDemand } from "./demand.js";
import type { Proposal } from "./proposal.js";
import type { ServiceRecommendation, ServiceSetting } from "./services/service-recommendation.js";

/** A subject with too few observations for a proposal. */
export interface NotEnoughData {
  /** Rule or service without a proposal: `shop/user`. */
  readonly subject: string;
  /** Sentences about what was observed and how much more is needed. */
  readonly missing: readonly string[];
}

/** All recommendations, and the subjects without one. */
export interface Recommendation {
  readonly demands: readonly CallerDemand[];
  readonly proposals: readonly Proposal[];
  readonly notEnough: readonly NotEnoughData[];
  /** Recommendations for services, in addition to limits. */
  readonly services: readonly ServiceRecommendation[];
  /** Settings below `proxies`. */
  readonly overload: readonly ServiceSetting[];
  readonly budgets: readonly BudgetProposal[];
  /** Sentences about the input and its limitations. */
  readonly warnings: readonly string[];
}

/** Reports whether anything is proposed. */
export function proposes({ proposals, services, overload, budgets }: Recommendation): boolean {
  return (
    proposals.length + overload.length + budgets.length > 0 ||
    services.some(({ settings }) => settings.length > 0)
  );
}

/** A recommendation without limits. */
export const noLimits: Recommendation = {
  demands: [],
  proposals: [],
  notEnough: [],
  services: [],
  overload: [],
  budgets: [],
  warnings: [],
};
