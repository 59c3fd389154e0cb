import type { KneeVerdict } from "./knee-fit.js";
import type { ServiceObservations } from "./service-observations.js";

/** A value for a policy, and its origin. */
export interface ServiceSetting {
  /** Path below the service or below `proxies`: `admission.queue.maxWait`. */
  readonly path: string;
  readonly value: number | string;
  /** The current value; undefined: none. */
  readonly was: number | string | undefined;
  /** One line, written as a comment next to the value in the policy. */
  readonly why: string;
  /** `optional`: the policy works well without it, so it is written only on request. */
  readonly use: "write" | "optional";
}

/** Recommendation for one service. */
export interface ServiceRecommendation {
  readonly observations: ServiceObservations;
  readonly verdict: KneeVerdict;
  readonly settings: readonly ServiceSetting[];
  /** Sentences about what the verdict means, and whether `admission: {}` alone is enough. */
  readonly reasons: readonly string[];
  /** Sentences about what the data does not show, and what would be needed. */
  readonly missing: readonly string[];
}
