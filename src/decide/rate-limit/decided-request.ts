import type { Charge } from "../../core/limits/bucket.js";
import type { ChargeResult } from "../../core/limits/gcra.js";

/** A request as the law decided it, wherever it was decided. */
export interface DecidedRequest {
  readonly isDenied: boolean;
  /** What was asked, one a limit: in a failure mode not what the policy says. */
  readonly charges: readonly Charge[];
  /** One a charge; undefined where memory refused and does not know of this one. */
  readonly results: readonly (ChargeResult | undefined)[];
  readonly nowUs: number;
  /** Whether it was refused by what the store had said a moment ago. */
  readonly isFromMemory: boolean;
  /** Whether failure modes answered for the store. */
  readonly isFallback?: true;
}
