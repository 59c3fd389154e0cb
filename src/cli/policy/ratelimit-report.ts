import { many } from "../../core/base/many.js";
import { denialOf } from "../../core/limits/limit.js";
import type { Comparison, LimitComparison, MetDifference } from "../../policy/diff/comparison.js";
import { groupThousands } from "../../policy/diff/limit-words.js";
import type { DifferenceRow } from "../../policy/migration/difference-row.js";
import { visibleText } from "../../policy/problems/problem.js";
import { drawTable } from "../terminal/text-table.js";

/** Maximum number of limits in the text; JSON has all. */
export const reportLimitsMax = 50;

/**
 * Returns the changes for a configuration as text.
 *
 * @param columnsMax line length to which names are shortened; Infinity without a terminal
 */
export function renderComparison(comparison: Comparison, columnsMax: number): string {
  const { same, differences } = comparison;
  const sections = [
    section(
      "The same in both",
      same.flatMap(({ what, ruleCount }) => {
        return wrapAt("  ", `${quoted(what)} (${many(ruleCount, "descriptor")})`);
      }),
    ),
    ...kindTitles.map(([kind, title]) =>
      section(title, differences.filter((one) => one.kind === kind).flatMap(renderDifference)),
    ),
    section(
      "The maximum of each limit, in envoyproxy/ratelimit and in Headgate",
      renderLimits(comparison, columnsMax),
    ),
  ];
  return sections.filter((text) => text !== "").join("\n\n");
}

const kindTitles: readonly (readonly [DifferenceRow["kind"], string])[] = [
  ["better", "Better in Headgate, without disadvantages"],
  ["different", "Different in Headgate: check whether you rely on it"],
];

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : [title, ...lines].join("\n");
}

function renderDifference({ id, ruleCount, ...row }: MetDifference): readonly string[] {
  return [
    `  ${id} (${many(ruleCount, "descriptor")})`,
    ...wrapAt("    ratelimit: ", quoted(row.reference)),
    ...wrapAt("    Headgate:  ", quoted(row.headgate)),
    ...(row.choice === undefined ? [] : wrapAt("    keep the old way: ", plain(row.choice))),
  ];
}

const lineCharsMax = 96;

/** Wraps a text into lines, indented below their head. */
function wrapAt(head: string, text: string): readonly string[] {
  const lines: string[] = [];
  let line = head;
  const indent = " ".repeat(head.length);
  for (const word of text.split(" ")) {
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
      `${groupThousands(limit.requestsPerUnit)} a ${limit.unit}${shadowNote(limit)}`,
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
    { title: "to keep its windows" },
  ] as const;
  const restCount = limits.length - rows.length;
  const rest = restCount > 0 ? [`  and ${restCount} more (-o json shows all)`] : [];
  return [...drawTable(columns, rows, columnsMax), ...rest, ...legend];
}

function shadowNote({ role }: LimitComparison): string {
  return denialOf(role) === "shadow" ? ", shadow" : "";
}

const legend: readonly string[] = [
  "  at once: in one moment; in envoyproxy/ratelimit at the edge of two windows",
  "  in a window: from one full second, minute, hour or day to the next, starting unused",
];

function pair({ reference, headgate }: LimitComparison, count: keyof LimitComparison["reference"]) {
  return `${groupThousands(reference[count])}, here ${groupThousands(headgate[count])}`;
}

/** Replaces Markdown's code marks with quotation marks. */
function quoted(text: string): string {
  return text.replaceAll("`", '"');
}

/** Removes Markdown's code marks. */
function plain(text: string): string {
  return text.replaceAll("`", "");
}
