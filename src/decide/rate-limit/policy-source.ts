import type { Policy } from "../../policy/policy.js";

/** Where the active policy comes from: an immutable snapshot, swapped whole. */
export interface PolicySource {
  /** Undefined until a first policy is loaded. */
  current(): Policy | undefined;
}
