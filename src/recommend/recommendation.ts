import type { CallerDemand } from "./demand.js";
import type { Proposal } from "./proposal.js";

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
  /** Sentences about what was read, and what it cannot tell. */
  readonly warnings: readonly string[];
}
