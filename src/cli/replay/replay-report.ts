import { formatTimestamp } from "../../core/base/timestamp.js";
import { visibleText } from "../../policy/problems/problem.js";
import type { ReplayReport } from "../../simulate/replay.js";
import { alignTimeline, type TimelineCounts } from "../../simulate/timeline.js";
import { sparkline } from "../terminal/sparkline.js";
import { drawTable } from "../terminal/text-table.js";
import type { LogCounts } from "./log-run.js";

/** Results of a replay and of reading its logs. */
type ReplayOutcome = ReplayReport & LogCounts;

/** Maximum columns of a timeline, and of one next to a rule. */
const timelineColumnsMax = 60;
const ruleTimelineColumnsMax = 24;

/** Maximum number of rules shown; JSON has all. */
const rulesShownMax = 20;

/** Maximum length of a key that is shown. */
const keyCharsMax = 48;

/** Returns the report as text. */
export function renderReplay(outcome: ReplayOutcome, columns: number): string {
  const { calls } = outcome;
  if (outcome.lineCount === 0) return "The log is empty.";
  const lines = [...headLines(outcome)];
  if (calls !== undefined) {
    const width = Math.min(timelineColumnsMax, columns - 12);
    const most = Math.max(...calls.counts);
    const denied = alignTimeline(outcome.denied, calls);
    lines.push(
      "",
      `From ${formatTimestamp(calls.startUs)}, ${durationText(calls)}`,
      `  sent     ${sparkline(calls.counts, width)}`,
      `  limited  ${sparkline(denied, width, most)}`,
      "",
      ...ruleLines(outcome, calls),
    );
  }
  return lines.join("\n");
}

function headLines(outcome: ReplayOutcome): readonly string[] {
  const { lineCount, unreadableCount, firstUnreadable, callCount, deniedCount } = outcome;
  const { unasked, limitedThenCount, limitedBothCount, unknownParts, laterParts, lateCount } =
    outcome;
  const lines = [
    `${count(lineCount, "line")}, ${count(callCount, "request")} with limits: ` +
      `${count(deniedCount)} would be limited (${percent(deniedCount, callCount)}).`,
  ];
  if (limitedThenCount > 0) {
    const again = `${count(limitedBothCount)} of them would be limited again`;
    lines.push(`${count(limitedThenCount)} were limited then, ${again}.`);
  }
  if (unasked.count > 0) {
    const hosts = unasked.hosts.map(({ key, count: times }) => {
      return `${key === "" ? "no host" : shorten(key)} (${count(times)})`;
    });
    lines.push(
      `${count(unasked.count, "request")} belong to no service with limits: ${hosts.join(", ")}.`,
      "  Give a service of the policy these hosts, or use --domain and " +
        "--descriptor for all requests.",
    );
  }
  if (unreadableCount > 0) {
    const where =
      firstUnreadable === undefined ? "" : `, the first at ${visibleText(firstUnreadable)}`;
    lines.push(`${count(unreadableCount, "line")} could not be read${where}.`);
  }
  for (const { key, count: times } of unknownParts) {
    lines.push(`${count(times, "descriptor")} skipped: only Envoy knows "${shorten(key)}".`);
  }
  for (const { key, count: times } of laterParts) {
    const why = "it is charged after the response, and a log does not contain its cost";
    lines.push(`${count(times, "descriptor")} skipped: of "${shorten(key)}" ${why}.`);
  }
  if (lateCount > 0) {
    const late = `${count(lateCount, "request")} arrived too late to be sorted`;
    lines.push(`${late}: sort the log by time first.`);
  }
  return lines;
}

function ruleLines({ rules }: ReplayOutcome, calls: TimelineCounts): readonly string[] {
  if (rules.length === 0) return ["No request matched a limit."];
  const shown = rules.slice(0, rulesShownMax);
  const table = drawTable(
    [
      { title: "domain" },
      { title: "rule" },
      { title: "requests", align: "right" },
      { title: "limited", align: "right" },
      { title: "", align: "right" },
      { title: "when" },
      { title: "most often" },
    ],
    shown.map(({ domain, label, callCount, overCount, denied, keys }) => [
      shorten(domain),
      shorten(label),
      count(callCount),
      count(overCount),
      percent(overCount, callCount),
      sparkline(alignTimeline(denied, calls), ruleTimelineColumnsMax),
      keys
        .slice(0, 2)
        .map(({ key, count: times }) => `${shorten(key)} (${count(times)})`)
        .join(", "),
    ]),
  );
  const more = rules.length - shown.length;
  return [...table, ...(more > 0 ? [`and ${count(more, "rule")} more`] : [])];
}

/** Shortens callers' texts to one line without terminal control characters. */
function shorten(text: string): string {
  const visible = visibleText(text);
  return visible.length > keyCharsMax ? `${visible.slice(0, keyCharsMax - 1)}…` : visible;
}

function count(amount: number, noun?: string): string {
  const digits = amount.toLocaleString("en");
  if (noun === undefined) return digits;
  return `${digits} ${noun}${amount === 1 ? "" : "s"}`;
}

function percent(part: number, whole: number): string {
  if (whole === 0) return "0 %";
  const value = (100 * part) / whole;
  return `${value > 0 && value < 0.1 ? "<0.1" : value.toFixed(1)} %`;
}

function durationText({ stepUs, counts }: TimelineCounts): string {
  const seconds = Math.round((stepUs * counts.length) / 1_000_000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3_600)} h`;
}
