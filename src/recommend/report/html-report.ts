import { formatTimestamp } from "../../core/base/timestamp.js";
import { formatDuration } from "../../policy/text/duration.js";
import { element, listOf, type Markup, tableOf } from "../../simulate/report/markup.js";
import { reportPage } from "../../simulate/report/report-page.js";
import type { TimelineCounts } from "../../simulate/timeline.js";
import type { CallerDemand } from "../demand.js";
import type { Proposal, ProposedNumber } from "../proposal.js";
import {
  busiestWindows,
  heldOutText,
  percent,
  proposedText,
  refusalText,
  subjectOf,
} from "../proposal-words.js";
import type { Recommendation } from "../recommendation.js";
import { type LinePlot, linePlotFigure } from "./line-plot.js";
import { serviceParts } from "./service-parts.js";

/** Returns a report with plots in one file, without scripts and without network resources. */
export function recommendationHtml(recommendation: Recommendation): string {
  const title = "Recommended limits";
  const report = recommendationReport(recommendation);
  return reportPage({ title, heading: title }, report);
}

/** Returns the report below its title: observations and proposals, with plots and tables. */
export function recommendationReport(recommendation: Recommendation): readonly Markup[] {
  const { demands, proposals } = recommendation;
  return [
    ...overview(recommendation),
    ...demands.flatMap((demand) => [
      element("h2", {}, [subjectOf(demand)]),
      ...demandParts(
        demand,
        proposals.filter((one) => isOf(one, demand)),
      ),
    ]),
    ...serviceParts(recommendation),
    ...budgetParts(recommendation),
  ];
}

function budgetParts({ budgets }: Recommendation): readonly Markup[] {
  if (budgets.length === 0) return [];
  const titles = ["budget", "proposed", "now", "accounts", "above it", "where it comes from"];
  const rows = budgets.map((one) => [
    one.budget,
    one.amount,
    one.was ?? "–",
    String(one.accountCount),
    String(one.overCount),
    one.why,
  ]);
  return [element("h2", {}, ["Budgets"]), tableOf({ label: "Budgets", titles, rows })];
}

function isOf(proposal: Proposal, demand: CallerDemand): boolean {
  return proposal.domain === demand.domain && proposal.rule === demand.rule;
}

function overview({
  proposals,
  services,
  budgets,
  notEnough,
  warnings,
}: Recommendation): readonly Markup[] {
  const rows = proposals.map((one) => [
    limitName(one),
    proposedText(one),
    wasText(one),
    percent(one.refusals.requestRatio),
    percent(one.refusals.callerDayRatio),
  ]);
  const titles = ["limit", "proposed", "now", "requests refused", "callers refused on a day"];
  return [
    ...(rows.length > 0 ? [tableOf({ label: "Proposals", titles, rows })] : []),
    ...(rows.length + services.length + budgets.length === 0
      ? [element("p", {}, ["Nothing is proposed."])]
      : []),
    ...notEnough.map(({ subject, missing }) => {
      const name = element("span", { class: "bad" }, [subject]);
      return element("p", {}, [name, `: ${missing.join("; ")}.`]);
    }),
    ...warnings.map((text) => element("p", {}, [text])),
  ];
}

function limitName(proposal: Proposal): string {
  return `${subjectOf(proposal)}${proposal.limit === undefined ? "" : ` ${proposal.limit}`}`;
}

function wasText({ hits, burst }: Proposal): string {
  return hits.was === undefined ? "no limit" : `${hits.was}, burst ${burst.was ?? ""}`;
}

function demandParts(demand: CallerDemand, proposals: readonly Proposal[]): readonly Markup[] {
  const { requestCount, callerCount, dayCount, startUs, endUs, topRatios, zipfExponent } = demand;
  const counted = demand.steps === undefined ? "requests" : "hits";
  const zipf = zipfExponent === undefined ? "" : ` Zipf exponent ${zipfExponent.toFixed(2)}.`;
  const rows = busiestWindows(demand).map(([window, { p50, p90, p99, max }]) => [
    `busiest ${window}`,
    ...[p50, p90, p99, max].map((hits) => hits.toLocaleString("en")),
  ]);
  const text =
    `${requestCount.toLocaleString("en")} ${counted} of ${callerCount.toLocaleString("en")} ` +
    `callers on ${dayCount} days, ${formatTimestamp(startUs)} to ${formatTimestamp(endUs)}. ` +
    `The first caller sent ${percent(topRatios.top1)} of the requests, the first ten ` +
    `${percent(topRatios.top10)}, the first hundred ${percent(topRatios.top100)}.${zipf}`;
  const titles = ["hits of a caller", "median", "90 %", "99 %", "most"];
  const plots = [...demandPlots(demand), ...proposals.map(curvePlot)];
  return [
    element("p", {}, [text]),
    tableOf({ label: titles[0] ?? "", titles, rows }),
    ...proposals.flatMap(proposalParts),
    element("div", { class: "figures" }, plots.map(linePlotFigure)),
  ];
}

function proposalParts(proposal: Proposal): readonly Markup[] {
  const { hits, burst, refusals, reasons } = proposal;
  const number = (name: string, { value, was, band }: ProposedNumber) => [
    name,
    String(value),
    was === undefined ? "–" : String(was),
    band === undefined ? "–" : `${band.low} to ${band.high}`,
  ];
  const origins = [`requests_per_unit: ${hits.why}.`, `burst: ${burst.why}.`];
  const callers = refusals.callers.map(({ name, refusedCount, isOutlier }) => [
    name,
    refusedCount.toLocaleString("en"),
    isOutlier ? "far above others" : "",
  ]);
  const name = limitName(proposal);
  return [
    element("h3", {}, [`${name}: ${proposedText(proposal)}`]),
    tableOf({
      label: name,
      titles: ["number", "proposed", "now", "90 % band"],
      rows: [number("requests_per_unit", hits), number("burst", burst)],
    }),
    listOf([...origins, ...reasons]),
    element("p", {}, [refusalText(proposal)]),
    ...(callers.length === 0
      ? []
      : [tableOf({ label: "Refused callers", titles: callerTitles, rows: callers })]),
    element("p", {}, [heldOutText(proposal)]),
  ];
}

const callerTitles = ["refused caller", "requests", "kind"];

/** Returns a number that fits next to an axis: `1,500`, `20K`. */
function amount(value: number): string {
  const notation = value >= 10_000 ? "compact" : "standard";
  return value.toLocaleString("en", { maximumFractionDigits: 2, notation });
}

function demandPlots({ requests, byHour, byWeekday }: CallerDemand): readonly LinePlot[] {
  const plots: LinePlot[] = [];
  const share = { title: "of all requests", scale: "linear", format: percent } as const;
  if (requests !== undefined) {
    const { startUs, stepUs, counts } = requests;
    const seconds = stepUs / 1_000_000;
    const points = counts.map((count, i) => [startUs + i * stepUs, count / seconds] as const);
    plots.push({
      title: "Requests over time",
      note: `Requests a second, means of ${formatDuration(1_000 * seconds)}.`,
      x: { title: "time (UTC)", scale: "linear", ticks: timeTicks(requests), format: timeText },
      y: { title: "requests a second", scale: "linear", format: amount },
      lines: [{ title: "requests a second", points }],
      mark: undefined,
    });
  }
  plots.push({
    title: "By hour of the day",
    note: "All days together, in UTC.",
    x: { title: "hour", scale: "linear", ticks: [0, 6, 12, 18, 23], format: String },
    y: share,
    lines: [{ title: "of all requests", points: byHour.map((part, hour) => [hour, part]) }],
    mark: undefined,
  });
  plots.push({
    title: "By day of the week",
    note: "All weeks together, in UTC.",
    x: {
      title: "day",
      scale: "linear",
      ticks: weekdays.map((_, day) => day),
      format: (day) => weekdays[day] ?? "",
    },
    y: share,
    lines: [{ title: "of all requests", points: byWeekday.map((part, day) => [day, part]) }],
    mark: undefined,
  });
  return plots;
}

const weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** Returns the midnights, or for a shorter time its start and end. */
function timeTicks({ startUs, stepUs, counts }: TimelineCounts): readonly number[] {
  const dayUs = 86_400_000_000;
  const endUs = startUs + stepUs * (counts.length - 1);
  const days = Math.floor(endUs / dayUs) - Math.floor(startUs / dayUs);
  if (days < 2) return [startUs, endUs];
  const first = Math.ceil(startUs / dayUs) * dayUs;
  const every = Math.ceil(days / 5) * dayUs;
  return Array.from({ length: 6 }, (_, i) => first + i * every).filter((time) => time <= endUs);
}

function timeText(timeUs: number): string {
  return formatTimestamp(timeUs).slice(5, 16).replace("T", " ");
}

/** Plots the bursts that rates need, in the range in which limits differ. */
function curvePlot(proposal: Proposal): LinePlot {
  const { curve, hits, burst, periodSeconds } = proposal;
  const end = curve.findIndex((one) => one.burst === curve.at(-1)?.burst);
  const start = curve.findIndex((one) => one.burst < 1_000 * burst.value);
  const shown = curve.slice(Math.max(0, start), Math.max(end, start) + 2);
  return {
    title: `What rates need: ${limitName(proposal)}`,
    note: "The burst that callers need at each rate, before headroom, and the proposal.",
    x: {
      title: `requests per ${formatDuration(1_000 * periodSeconds)}`,
      scale: "log",
      format: amount,
    },
    y: { title: "burst", scale: "log", format: amount },
    lines: [{ title: "burst", points: shown.map((one) => [one.hits, one.burst]) }],
    mark: { x: hits.value, y: burst.value, label: `proposed: ${hits.value}, ${burst.value}` },
  };
}
