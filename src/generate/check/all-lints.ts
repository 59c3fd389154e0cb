import { clusterLints } from "./cluster-lints.js";
import { filterLints } from "./filter-lints.js";
import type { Lint } from "./lint.js";
import { overloadLints } from "./overload-lints.js";
import { quotaLints } from "./quota-lints.js";

/** All lints of Envoy's configuration: what Envoy takes, or refuses late, and should not be. */
export const allLints: readonly Lint[] = [
  ...clusterLints,
  ...filterLints,
  ...overloadLints,
  ...quotaLints,
];
