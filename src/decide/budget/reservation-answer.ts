import type { HeaderField } from "../../core/base/header-field.js";
import type { EntryResult } from "../../core/budgets/account.js";
import type { FallbackRoute } from "../../core/limits/limit.js";
import type { RequestMarks } from "../../core/limits/request-marks.js";
import { type AskedAccount, usedRatio } from "./asked-call.js";
import type { BudgetAnswer } from "./budget-call.js";

/** Returns the first enforced budget that is over, and when all of them have room by time alone. */
export function refusedBy(
  entries: readonly AskedAccount[],
  results: readonly EntryResult[],
): Extract<BudgetAnswer, { kind: "denied" }> {
  let budget: string | undefined;
  let retryUs: number | undefined = 0;
  for (const [i, asked] of entries.entries()) {
    const { isOver, retryUs: ownUs } = results[i] ?? notOver;
    if (!isOver || !asked.entry.isEnforced) continue;
    asked.budget.counts.reservations.refused += 1;
    budget ??= asked.budget.policy.name;
    // A budget in which only the end of other calls makes room has no time of its own.
    if (ownUs === undefined || retryUs === undefined) retryUs = undefined;
    else retryUs = Math.max(retryUs, ownUs);
  }
  const retryMs = retryUs === undefined ? undefined : retryUs / 1_000;
  return { kind: "denied", budget: budget ?? "", retryMs };
}

const notOver: Pick<EntryResult, "isOver" | "retryUs"> = { isOver: false };

/**
 * Returns the marks of a call that passes: annotations of budgets that are over, the first
 * fallback, and warnings of budgets that are used up to `warnAt`, including this call. Of several
 * fields with the same name, that of the most used budget applies. Undefined: none.
 */
export function passedMarks(
  entries: readonly AskedAccount[],
  results: readonly EntryResult[],
): RequestMarks | undefined {
  const fields: { readonly ratio: number; readonly headers: readonly HeaderField[] }[] = [];
  let fallback: FallbackRoute | undefined;
  for (const [i, { budget, entry }] of entries.entries()) {
    const result = results[i];
    if (result === undefined) continue;
    const { counts, policy } = budget;
    const ratio = usedRatio(entry, result);
    if (result.isOver && policy.isDryRun) {
      counts.reservations.dryRun += 1;
    } else if (result.isOver && policy.over?.kind === "annotate") {
      counts.reservations.annotated += 1;
      fields.push({ ratio, headers: policy.over.headers });
    } else if (result.isOver && policy.over?.kind === "fallback") {
      counts.reservations.fallback += 1;
      fallback ??= policy.over.to;
    } else {
      counts.reservations.reserved += 1;
    }
    if (policy.warnAt !== undefined && !policy.isDryRun && ratio >= policy.warnAt) {
      counts.warnedCount += 1;
      fields.push({ ratio, headers: policy.warnHeaders });
    }
  }
  if (fields.length === 0 && fallback === undefined) return undefined;
  const setHeaders = fields.sort((a, b) => a.ratio - b.ratio).flatMap((one) => one.headers);
  return fallback === undefined ? { setHeaders } : { setHeaders, fallback };
}
