import type { HeaderField } from "../base/header-field.js";
import type { FallbackRoute } from "./limit.js";

/** What limits and budgets change about a request that passes. */
export interface RequestMarks {
  /** For the upstream. A later field replaces an earlier one of the same name. */
  readonly setHeaders: readonly HeaderField[];
  /** Where it goes instead. Absent: on. */
  readonly fallback?: FallbackRoute;
}
