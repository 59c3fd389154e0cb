import type { HeaderField } from "../base/header-field.js";
import type { FallbackRoute, Limit } from "./limit.js";

/**
 * The header that tells the upstream which cluster a request falls back to. It is removed from
 * callers' requests. Generated routes match the same value in dynamic metadata.
 */
export const fallbackHeader = "x-headgate-fallback";

/** The changes that limits and budgets make to a request that passes. */
export interface RequestMarks {
  /** For the upstream. A later field replaces an earlier one of the same name. */
  readonly setHeaders: readonly HeaderField[];
  /** Where the request goes instead. Absent: its route is unchanged. */
  readonly fallback?: FallbackRoute;
}

/** Whether a limit may change a request that passes. */
export function isMarking({ over, warn }: Limit): boolean {
  return warn !== undefined || over?.kind === "annotate" || over?.kind === "fallback";
}

/** Returns all headers that the marks set, the fallback's last. */
export function markFields({ setHeaders, fallback }: RequestMarks): readonly HeaderField[] {
  return fallback === undefined ? setHeaders : [...setHeaders, fallbackField(fallback)];
}

function fallbackField(fallback: FallbackRoute): HeaderField {
  return fallback.kind === "header"
    ? fallback.header
    : { name: fallbackHeader, value: fallback.cluster };
}

/** Combines two sets of marks, the second one's fields last. The first fallback applies. */
export function joinMarks(
  one: RequestMarks | undefined,
  other: RequestMarks | undefined,
): RequestMarks | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const fallback = one.fallback ?? other.fallback;
  const setHeaders = [...one.setHeaders, ...other.setHeaders];
  return fallback === undefined ? { setHeaders } : { setHeaders, fallback };
}
