import { many } from "../../core/base/many.js";
import { visibleText } from "../../policy/problems/problem.js";
import type { TestOutcome } from "../../simulate/test-run.js";

/** A file of tests that was run. */
export interface TestedFile {
  readonly file: string;
  readonly outcomes: readonly (Omit<TestOutcome, "rules"> & {
    /** Rules that some call met. */
    readonly ruleIndexes: readonly number[];
  })[];
  readonly durationMs: number;
  /** Rules with an effect, and those that no test has met, as `domain/label`. */
  readonly ruleCount: number;
  readonly unmetRules: readonly string[];
}

/** Rules that nobody met which are named. */
const unmetShownMax = 5;

/** The report for people. */
export function renderTests(files: readonly TestedFile[]): string {
  const lines: string[] = [];
  for (const { file, outcomes, ruleCount, unmetRules } of files) {
    lines.push(visibleText(file));
    for (const { name, failures, callCount } of outcomes) {
      const mark = failures.length === 0 ? "✓" : "✗";
      lines.push(`  ${mark} ${visibleText(name)} (${many(callCount, "call")})`);
      for (const { line, message } of failures) {
        lines.push(`      ${visibleText(file)}:${line}: ${visibleText(message)}`);
      }
    }
    const passedCount = outcomes.filter(({ failures }) => failures.length === 0).length;
    lines.push(`  ${passedCount} of ${many(outcomes.length, "test")} passed.`);
    if (unmetRules.length > 0) {
      const more = unmetRules.length - unmetShownMax;
      const shown = unmetRules.slice(0, unmetShownMax).map(visibleText).join(", ");
      const rest = more > 0 ? `, and ${more} more` : "";
      lines.push(
        `  No test matched ${unmetRules.length} of ${many(ruleCount, "rule")}: ${shown}${rest}.`,
      );
    }
  }
  return lines.join("\n");
}

/** The report for servers that build and test. Source: the XML of JUnit's Ant task. */
export function renderJunit(files: readonly TestedFile[]): string {
  const suites = files.flatMap(({ file, outcomes, durationMs }) => {
    const failedCount = outcomes.filter(({ failures }) => failures.length > 0).length;
    const counts = `tests="${outcomes.length}" failures="${failedCount}" errors="0"`;
    const time = `time="${(durationMs / 1_000).toFixed(3)}"`;
    return [
      `  <testsuite name="${escapeXml(file)}" ${counts} ${time}>`,
      ...outcomes.flatMap(({ name, line, failures }) => {
        const place = `classname="${escapeXml(file)}" file="${escapeXml(file)}" line="${line}"`;
        const open = `    <testcase name="${escapeXml(name)}" ${place}`;
        if (failures.length === 0) return [`${open}/>`];
        return [
          `${open}>`,
          ...failures.map((failure) => {
            const message = escapeXml(`line ${failure.line}: ${failure.message}`);
            return `      <failure message="${message}"/>`;
          }),
          "    </testcase>",
        ];
      }),
      "  </testsuite>",
    ];
  });
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    "<testsuites>",
    ...suites,
    "</testsuites>",
  ].join("\n");
}

/** Of a text that may hold anything; what XML cannot hold becomes visible first. */
function escapeXml(text: string): string {
  return visibleText(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
