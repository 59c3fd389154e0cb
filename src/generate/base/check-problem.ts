import type { GenerateProblemId, RatedId, Severity } from "./generate-problems.js";

/** Names and indexes from the top of a document down. */
export type JsonPath = readonly (string | number)[];

/** Something wrong in a document. */
export interface CheckProblem {
  readonly id: GenerateProblemId;
  readonly path: JsonPath;
  /** One sentence, without a full stop. */
  readonly message: string;
  /** What would be right. */
  readonly hint: string;
  readonly severity: Severity;
}

/** Such a problem, whose severity its row says. */
export type FoundProblem = RatedId & Pick<CheckProblem, "path" | "message" | "hint">;

/** Takes what is wrong. */
export type ReportProblem = (problem: FoundProblem) => void;

/**
 * A path as text. Names that are no plain words stand in quotes.
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
