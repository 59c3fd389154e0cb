import type { Policy } from "../../policy/policy.js";

/** The source of the active policy, as an immutable snapshot that is replaced as a whole. */
export interface PolicySource {
  /** Undefined until the first policy is loaded. */
  current(): Policy | undefined;
}
