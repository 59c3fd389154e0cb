import type { HeaderField } from "../../core/base/header-field.js";
import { levelAt, unitsPerHit } from "../../core/limits/bucket.js";
import type { FallbackRoute } from "../../core/limits/limit.js";
import type { RequestMarks } from "../../core/limits/request-marks.js";
import type { DecidedRequest } from "./decision-observer.js";
import type { PreparedQuery } from "./prepared-query.js";

/** Returns what the limits of a query change about a request that passes. Undefined: nothing. */
export function marksOf(
  { asks }: Pick<PreparedQuery, "asks">,
  { charges, results, nowUs }: DecidedRequest,
): RequestMarks | undefined {
  const setHeaders: HeaderField[] = [];
  let fallback: FallbackRoute | undefined;
  for (const [i, { limit }] of asks.entries()) {
    const charge = charges[i];
    const result = results[i];
    if (charge === undefined || result === undefined) continue;
    const { warn, over } = limit;
    if (warn !== undefined) {
      // Rounds up to whole hits, the unit of limits: less than one hit has drained since the last.
      const usedHits = Math.ceil(levelAt(charge, result.bucket, nowUs) / unitsPerHit);
      const isNear = usedHits >= warn.atRatio * charge.burst;
      if (isNear || result.isOver) setHeaders.push(...warn.headers);
    }
    if (!result.isOver) continue;
    if (over?.kind === "annotate") setHeaders.push(...over.headers);
    if (over?.kind === "fallback") fallback ??= over.to;
  }
  if (fallback !== undefined) return { setHeaders, fallback };
  return setHeaders.length === 0 ? undefined : { setHeaders };
}
