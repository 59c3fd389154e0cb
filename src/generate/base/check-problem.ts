import type { GenerateProblemId, RatedId, Severity } from "./generate-problems.js";

/** Names and indexes that lead from the top of a document to a value. */
export type JsonPath = readonly (string | number)[];

/** A problem in a document. */
export interface CheckProblem {
  readonly id: GenerateProblemId;
  readonly path: JsonPath;
  /** One sentence, without a full stop. */
  readonly message: string;
  /** What a correct value would be. */
  readonly hint: string;
  readonly severity: Severity;
}

/** A problem whose severity comes from its row. */
export type FoundProblem = RatedId & Pick<CheckProblem, "path" | "message" | "hint">;

/** Receives a problem. */
export type ReportProblem = (problem: FoundProblem) => void;

/**
 * Formats a path as text. Names that are not plain words are quoted.
 *
 * Example: `static_resources.clusters[0].connect_timeout`.
 */
export function formatJsonPath(path: JsonPath): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else if (/^[A-Za-z_@][\w@-]*$/.test(part)) text += text === "" ? part : `.${part}`;
    else text += `[${JSON.stringify(part)}]`;
  }
  return text === "" ? "the whole document" : text;
}
