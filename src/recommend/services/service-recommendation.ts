import type { KneeVerdict } from "./knee-fit.js";
import type { ServiceObservations } from "./service-observations.js";

/** A value for a policy, and where it came from. */
export interface ServiceSetting {
  /** Below the service, or below `proxies`: `admission.queue.maxWait`. */
  readonly path: string;
  readonly value: number | string;
  /** What holds now; undefined: nothing. */
  readonly was: number | string | undefined;
  /** One line, which stands beside the value in the policy. */
  readonly why: string;
  /** `optional`: the policy does well without it, so it is written only on request. */
  readonly use: "write" | "optional";
}

/** What is recommended for one service. */
export interface ServiceRecommendation {
  readonly observations: ServiceObservations;
  readonly verdict: KneeVerdict;
  readonly settings: readonly ServiceSetting[];
  /** Sentences: what the verdict means, and whether `admission: {}` alone would do. */
  readonly reasons: readonly string[];
  /** Sentences: what cannot be told from what was observed, and what it would take. */
  readonly missing: readonly string[];
}
