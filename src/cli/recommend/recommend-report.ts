import type { Style } from "../../app/base/style.js";
import { many } from "../../core/base/many.js";
import { formatTimestamp } from "../../core/base/timestamp.js";
import type { BudgetProposal } from "../../recommend/budget-proposal.js";
import type { CallerDemand } from "../../recommend/demand.js";
import type { Proposal } from "../../recommend/proposal.js";
import {
  busiestWindows,
  heldOutText,
  percent,
  proposedText,
  refusalText,
  subjectOf,
} from "../../recommend/proposal-words.js";
import type { Recommendation } from "../../recommend/recommendation.js";
import type { LogCounts } from "../replay/log-run.js";
import { countText, safeText } from "../terminal/quantity.js";
import { sparkline } from "../terminal/sparkline.js";
import { drawTable } from "../terminal/text-table.js";
import { serviceLines } from "./service-report.js";

/** Results that are reported, including the recommendation. */
export interface RecommendOutcome {
  readonly recommendation: Recommendation;
  /** Undefined: no log was read. */
  readonly counts: LogCounts | undefined;
  /** Changed lines of the policy, by file. */
  readonly edits: readonly { readonly file: string; readonly lines: readonly string[] }[];
}

/** Maximum number of refused callers shown for each limit. */
const callersShownMax = 5;

/** Returns the report as text. */
export function renderRecommendation(outcome: RecommendOutcome, style: Style): string {
  const { recommendation, counts, edits } = outcome;
  const { demands, proposals, services, notEnough, warnings } = recommendation;
  const lines = counts === undefined ? [] : [`${lineText(counts.lineCount)} read.`];
  if (counts !== undefined && counts.unreadableCount > 0) {
    const first = safeText(counts.firstUnreadable ?? "");
    lines.push(`${lineText(counts.unreadableCount)} could not be read, the first at ${first}.`);
  }
  lines.push(...warnings.map(safeText));
  for (const demand of demands) {
    const own = proposals.filter(({ domain, rule }) => {
      return domain === demand.domain && rule === demand.rule;
    });
    lines.push("", style.bold(safeText(subjectOf(demand))), ...demandLines(demand));
    for (const proposal of own) lines.push("", ...proposalLines(proposal, style));
  }
  lines.push(...serviceLines(recommendation, style));
  for (const proposal of recommendation.budgets) lines.push("", ...budgetLines(proposal, style));
  for (const { subject, missing } of notEnough) {
    lines.push("", `${style.bad("Not enough data")} for ${safeText(subject)}:`);
    lines.push(...missing.map((text) => `  ${safeText(text)}`));
  }
  const isSilent = demands.length + services.length + recommendation.budgets.length === 0;
  if (isSilent && (counts !== undefined || notEnough.length === 0)) {
    lines.push("", "No request met a limit of the policy.");
  }
  for (const { file, lines: changed } of edits) {
    lines.push("", style.bold(safeText(file)), ...changed.map((line) => colored(line, style)));
  }
  return lines.join("\n");
}

function budgetLines(proposal: BudgetProposal, style: Style): readonly string[] {
  const { budget, amount, was, line, why, callCount, accountCount } = proposal;
  const { overCount, overNowCount } = proposal;
  const now = was === undefined ? ", which the policy does not have" : `, now ${was}`;
  const over = overNowCount === undefined ? "" : `, and ${overNowCount} above the amount now`;
  return [
    style.bold(`budget ${safeText(budget)}`),
    `${countText(callCount)} calls of ${many(accountCount, "account")}`,
    "",
    `${style.good("Proposed")}: ${safeText(amount)}${now}`,
    `  ${safeText(why)}`,
    `  ${many(overCount, "account")} above it in the busiest period${over}`,
    ...(line === undefined ? [] : [`  ${safeText(line)}`]),
  ];
}

function lineText(count: number): string {
  return `${countText(count)} line${count === 1 ? "" : "s"}`;
}

function colored(line: string, style: Style): string {
  const text = safeText(line);
  return line.startsWith("+") ? style.good(text) : line.startsWith("-") ? style.bad(text) : text;
}

function demandLines(demand: CallerDemand): readonly string[] {
  const { requestCount, callerCount, dayCount, startUs, endUs, isShared, steps } = demand;
  const counted = `${countText(requestCount)} ${steps === undefined ? "requests" : "hits"}`;
  const callers = isShared ? "one bucket for all" : `${countText(callerCount)} callers`;
  const { top1, top10, top100 } = demand.topRatios;
  const { zipfExponent } = demand;
  const zipf = zipfExponent === undefined ? "" : `; Zipf exponent ${zipfExponent.toFixed(2)}`;
  const table = drawTable(
    ["hits of a caller", "median", "90 %", "99 %", "most"].map((title, i) => ({
      title,
      align: i === 0 ? ("left" as const) : ("right" as const),
    })),
    busiestWindows(demand).map(([window, { p50, p90, p99, max }]) => [
      `busiest ${window}`,
      ...[p50, p90, p99, max].map(countText),
    ]),
  );
  return [
    `${counted}, ${callers}, ${many(dayCount, "day")} from ` +
      `${formatTimestamp(startUs)} to ${formatTimestamp(endUs)}`,
    ...table,
    `hours of the day   ${sparkline(demand.byHour, 24)}`,
    `days of the week   ${sparkline(demand.byWeekday, 7)}`,
    ...(isShared
      ? []
      : [
          `most frequent      1: ${percent(top1)}, 10: ${percent(top10)}, ` +
            `100: ${percent(top100)} of the requests${zipf}`,
        ]),
  ];
}

function proposalLines(proposal: Proposal, style: Style): readonly string[] {
  const { hits, burst, limit, refusals, heldOut, reasons } = proposal;
  const name = limit === undefined ? "" : ` (${safeText(limit)})`;
  const was = hits.was === undefined ? "" : `, now ${hits.was} and ${burst.was ?? ""}`;
  const band =
    hits.band === undefined || burst.band === undefined
      ? "no band: fewer than 3 days"
      : `${Math.round(100 * hits.band.level)} % band ${hits.band.low} to ${hits.band.high}, ` +
        `burst ${burst.band.low} to ${burst.band.high}`;
  const lines = [
    `${style.good("Proposed")}${name}: ${proposedText(proposal)}${was}`,
    `  ${band}`,
    ...reasons.map((text) => `  ${text}`),
    `  ${refusalText(proposal)}`,
    ...(heldOut === undefined ? [] : [`  ${heldOutText(proposal)}`]),
  ];
  const shown = refusals.callers.slice(0, callersShownMax).map((one) => {
    const far = one.isOutlier ? ", far above others" : "";
    return `${safeText(one.name)} (${countText(one.refusedCount)} refused${far})`;
  });
  if (shown.length > 0) lines.push(`  Refused: ${shown.join(", ")}`);
  return lines;
}
