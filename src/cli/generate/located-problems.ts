import type { GenerateProblem } from "../../generate/base/generator.js";
import type { PolicyPlaces } from "../../policy/policy-places.js";
import { quoteText, visibleText } from "../../policy/problems/problem.js";
import { problemsMax } from "../../policy/problems/problem-log.js";
import { diffTexts } from "../terminal/text-diff.js";
import type { FileStep } from "./generated-folder.js";

/** A problem and its position in the policy's files; undefined if it has none. */
export interface LocatedProblem extends Omit<GenerateProblem, "spot"> {
  readonly service: string | undefined;
  readonly path: readonly string[];
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;
  readonly excerpt: string | undefined;
  readonly caret: { readonly start: number; readonly length: number } | undefined;
}

/** Finds the position of each problem. Errors come first; each kind is sorted by position. */
export function locateProblems(
  problems: readonly GenerateProblem[],
  places: Pick<PolicyPlaces, "find">,
): readonly LocatedProblem[] {
  const located = problems.map(({ spot, ...problem }): LocatedProblem => {
    const place = places.find(spot);
    return {
      ...problem,
      ...spot,
      file: place?.file,
      line: place?.line,
      column: place?.column,
      excerpt: place?.excerpt,
      caret: place?.caret,
    };
  });
  const rank = ({ severity }: LocatedProblem): number => (severity === "error" ? 0 : 1);
  return located.toSorted((a, b) => rank(a) - rank(b) || (a.line ?? 0) - (b.line ?? 0));
}

/** Maximum number of further services that a warning names. */
const namedServicesMax = 3;

/**
 * Formats at most `problemsMax` problems, and the number of further ones. The same warning for
 * several services is printed once.
 *
 * Example:
 *
 *     shop.yaml:7:7: error HG320 the edge cannot tell apart ...
 *       7 |       adaptiveConcurrency: {}
 *         |       ^^^^^^^^^^^^^^^^^^^
 *       hint: generate sidecars
 */
export function formatLocated(problems: readonly LocatedProblem[]): string {
  const alike = new Map<string, [LocatedProblem, ...LocatedProblem[]]>();
  problems.forEach((problem, index) => {
    const key = isOfService(problem) ? warningKey(problem) : String(index);
    const known = alike.get(key);
    if (known === undefined) alike.set(key, [problem]);
    else known.push(problem);
  });
  const groups = [...alike.values()];
  const texts = groups.slice(0, problemsMax).map(([first, ...others]) => {
    return `${formatOne(first)}${formatOthers(others)}`;
  });
  const more = groups.slice(problemsMax).flat().length;
  if (more > 0) texts.push(`and ${more} more`);
  return texts.join("\n");
}

/** Only warnings are grouped: each error has to be fixed separately. */
function isOfService(
  problem: LocatedProblem,
): problem is LocatedProblem & { readonly service: string } {
  return problem.severity === "warning" && problem.service !== undefined;
}

/** Returns the same key for warnings that differ only in the service. */
function warningKey({
  service,
  ...problem
}: LocatedProblem & { readonly service: string }): string {
  const { id, message, hint } = problem;
  return JSON.stringify([id, message.replaceAll(quoteText(service), "-"), hint]);
}

function formatOthers(others: readonly LocatedProblem[]): string {
  if (others.length === 0) return "";
  const names = others.slice(0, namedServicesMax).map(({ service = "" }) => visibleText(service));
  const dots = others.length > namedServicesMax ? ", ..." : "";
  return `\n  the same in ${others.length} more: ${names.join(", ")}${dots}`;
}

function formatOne(problem: LocatedProblem): string {
  const { file, line, column, severity, id, message, hint, excerpt, caret } = problem;
  const words = visibleText(`${severity} ${id} ${message}`);
  if (file === undefined || excerpt === undefined || caret === undefined) {
    return `${words}\n  hint: ${visibleText(hint)}`;
  }
  const gutter = " ".repeat(String(line).length);
  return [
    `${visibleText(file)}:${line}:${column}: ${words}`,
    `  ${line} | ${excerpt}`.trimEnd(),
    `  ${gutter} | ${" ".repeat(caret.start)}${"^".repeat(caret.length)}`,
    `  hint: ${visibleText(hint)}`,
  ].join("\n");
}

/** Describes differences between a folder and the generated files; empty if there are none. */
export function formatStale(steps: readonly FileStep[]): string {
  return steps.flatMap(formatStep).join("\n");
}

function formatStep(step: FileStep): readonly string[] {
  switch (step.kind) {
    case "keep":
      return [];
    case "add":
      return [`missing: ${step.path}`];
    case "remove":
      return [`no longer generated: ${step.path}`];
    default: {
      const lines = diffTexts(step.oldText, step.text);
      return [`stale: ${step.path}`, ...lines.map((line) => `  ${visibleText(line)}`.trimEnd())];
    }
  }
}
