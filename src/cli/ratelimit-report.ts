import type { Comparison, LimitComparison, MetDifference } from "../policy/comparison.js";
import type { DifferenceRow } from "../policy/difference-row.js";
import { visibleText } from "../policy/problem.js";
import { drawTable } from "./text-table.js";

/** Limits that the text shows; JSON shows all. */
export const reportLimitsMax = 50;

/**
 * What changes for a configuration, as text for people.
 *
 * @param columnsMax the length of a line, for which names are cut; Infinity off a terminal
 */
export function renderComparison(comparison: Comparison, columnsMax: number): string {
  const { same, differences } = comparison;
  const sections = [
    section(
      "The same",
      same.map(({ what, ruleCount }) => `  ${many(ruleCount)} ${plain(what)}.`),
    ),
    ...kindTitles.map(([kind, title]) =>
      section(title, differences.filter((one) => one.kind === kind).flatMap(renderDifference)),
    ),
    section(
      "The most each limit admits, envoyproxy/ratelimit > Headgate",
      renderLimits(comparison, columnsMax),
    ),
  ];
  return sections.filter((text) => text !== "").join("\n\n");
}

const kindTitles: readonly (readonly [DifferenceRow["kind"], string])[] = [
  ["better", "Better"],
  ["different", "Different"],
];

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : [title, ...lines].join("\n");
}

function renderDifference({ id, ruleCount, ...row }: MetDifference): readonly string[] {
  return [
    `  ${id} (${ruleCount} ${ruleCount === 1 ? "rule" : "rules"})`,
    ...wrap("there:  ", row.reference),
    ...wrap("here:   ", row.headgate),
    ...(row.choice === undefined ? [] : wrap("switch: ", row.choice)),
  ];
}

const lineCharsMax = 96;

/** A text in lines, under one another behind their head. */
function wrap(head: string, text: string): readonly string[] {
  const lines: string[] = [];
  let line = `    ${head}`;
  const indent = " ".repeat(line.length);
  for (const word of plain(text).split(" ")) {
    if (line.length + word.length > lineCharsMax) {
      lines.push(line.trimEnd());
      line = indent;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()];
}

function renderLimits({ limits }: Comparison, columnsMax: number): readonly string[] {
  if (limits.length === 0) return [];
  const rows = limits
    .slice(0, reportLimitsMax)
    .map((limit) => [
      `  ${visibleText(limit.domain)}`,
      visibleText(limit.rule),
      `${limit.requestsPerUnit} a ${limit.unit}${limit.role === "shadow" ? " (shadow)" : ""}`,
      pair(limit, "atOnceCount"),
      pair(limit, "inWindowCount"),
      limit.suggestion ?? "",
    ]);
  const columns = [
    { title: "  domain", isFlexible: true },
    { title: "rule", isFlexible: true },
    { title: "limit" },
    { title: "at once", align: "right" },
    { title: "in a window", align: "right" },
    { title: "to be exact by the window" },
  ] as const;
  const restCount = limits.length - rows.length;
  const rest = restCount > 0 ? [`  and ${restCount} more (-o json shows all)`] : [];
  return [...drawTable(columns, rows, columnsMax), ...rest, ...legend];
}

const legend: readonly string[] = [
  "  at once: there around a window's edge, here out of an unused bucket",
  "  in a window: from one edge of the unit to the next, when nothing was used before",
];

function pair({ reference, headgate }: LimitComparison, count: keyof LimitComparison["reference"]) {
  return `${reference[count]} > ${headgate[count]}`;
}

function many(count: number): string {
  return `${count} ${count === 1 ? "rule" : "rules"}`;
}

/** Without the marks that Markdown has for code. */
function plain(text: string): string {
  return text.replaceAll("`", "");
}
