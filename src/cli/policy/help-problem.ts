import { remedyOf } from "../../app/store/store-remedies.js";
import { type ErrorCode, errorRows } from "../../core/base/errors.js";
import { isKeyOf } from "../../core/base/key-of.js";
import { doctorProblemRows } from "../../doctor/doctor-problems.js";
import { generateProblemRows } from "../../generate/base/generate-problems.js";
import { problemRows } from "../../policy/problems/problem.js";
import type { ProblemRow } from "../../policy/problems/problem-row.js";
import { findNearestName } from "../../policy/text/nearest-name.js";
import { problemExamples } from "./problem-examples.js";

/** Explanation of an id for users. */
interface IdHelp {
  readonly id: string;
  readonly title: string;
  readonly remedy: string;
  /** Command or event that reports it. */
  readonly from: string;
  readonly example?: { readonly wrong: string; readonly right: string };
}

/** Explanation of an id, or the nearest known one. */
type FoundHelp =
  | { readonly kind: "found"; readonly help: IdHelp }
  | { readonly kind: "unknown"; readonly nearest: string | undefined };

/** Reports whether a word has the form of problem ids or error codes. */
export function isIdLike(word: string): boolean {
  return /^HG\d+$/i.test(word) || /^[A-Z]+_[A-Z_]+$/.test(word) || Object.hasOwn(errorRows, word);
}

const problemSources: readonly (readonly [from: string, rows: Record<string, ProblemRow>])[] = [
  ["`headgate check`, and loading a policy", problemRows],
  ["`headgate generate`, and `headgate check --envoy`", generateProblemRows],
  ["`headgate doctor`", doctorProblemRows],
];

/** All ids and codes. */
export const helpIds: readonly string[] = [
  ...problemSources.flatMap(([, rows]) => Object.keys(rows)),
  ...Object.keys(errorRows),
].sort();

/** Explains the id of a problem or a finding, or an error code. */
export function findHelp(word: string): FoundHelp {
  const id = word.toUpperCase();
  for (const [from, rows] of problemSources) {
    const row = Object.hasOwn(rows, id) ? rows[id] : undefined;
    if (row === undefined) continue;
    const example = problemExamples[id];
    const reported = { id, ...row, from };
    return { kind: "found", help: example === undefined ? reported : { ...reported, example } };
  }
  if (isKeyOf(errorRows, id)) return { kind: "found", help: errorHelp(id) };
  return { kind: "unknown", nearest: findNearestName(id, helpIds) };
}

function errorHelp(code: ErrorCode): IdHelp {
  const { meaning, transient } = errorRows[code];
  const passing = transient
    ? "It may resolve itself. If it persists, check the log and the metrics."
    : "It does not resolve itself. See the log for details.";
  const from = "calls, logs and metrics of a running Headgate";
  return { id: code, title: meaning, remedy: remedyOf(code) ?? passing, from };
}

/** Returns the explanation as text. */
export function renderIdHelp({ id, title, remedy, from, example }: IdHelp): string {
  const lines = [`${id}  ${title}`, "", `What to do: ${remedy}`, `Reported by: ${from}`];
  if (example !== undefined) {
    lines.push("", "Wrong:", indented(example.wrong), "", "Right:", indented(example.right));
  }
  return lines.join("\n");
}

function indented(text: string): string {
  return text
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n");
}
