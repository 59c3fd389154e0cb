import type { HeaderField } from "../base/header-field.js";
import type { FallbackRoute, Limit } from "./limit.js";

/**
 * Tells the upstream the cluster that a request falls back to; callers' own are removed. Generated
 * routes look at the same in dynamic metadata.
 */
export const fallbackHeader = "x-headgate-fallback";

/** What limits and budgets change about a request that passes. */
export interface RequestMarks {
  /** For the upstream. A later field replaces an earlier one of the same name. */
  readonly setHeaders: readonly HeaderField[];
  /** Where it goes instead. Absent: on. */
  readonly fallback?: FallbackRoute;
}

/** Whether a limit may change a request that passes. */
export function isMarking({ over, warn }: Limit): boolean {
  return warn !== undefined || over?.kind === "annotate" || over?.kind === "fallback";
}

/** All headers that marks set, that of a fallback last. */
export function markFields({ setHeaders, fallback }: RequestMarks): readonly HeaderField[] {
  return fallback === undefined ? setHeaders : [...setHeaders, fallbackField(fallback)];
}

function fallbackField(fallback: FallbackRoute): HeaderField {
  return fallback.kind === "header"
    ? fallback.header
    : { name: fallbackHeader, value: fallback.cluster };
}

/** Both, the second one's fields last. The first fallback counts. */
export function joinMarks(
  one: RequestMarks | undefined,
  other: RequestMarks | undefined,
): RequestMarks | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const fallback = one.fallback ?? other.fallback;
  const setHeaders = [...one.setHeaders, ...other.setHeaders];
  return fallback === undefined ? { setHeaders } : { setHeaders, fallback };
}
