import { assert } from "../core/base/errors.js";
import { quoteText } from "../policy/problems/problem.js";
import type { Document } from "./base/document.js";
import { isSafePath } from "./base/document-path.js";
import { rated } from "./base/generate-problems.js";
import type {
  Generated,
  GeneratedPolicy,
  GenerateOptions,
  GenerateProblem,
} from "./base/generator.js";
import { lintPolicy } from "./lint-policy.js";
import { type Target, targets } from "./targets.js";

/** A target, the policy to generate it from, and the options. */
interface GenerateRequest {
  readonly target: Target;
  readonly policy: GeneratedPolicy;
  readonly options: GenerateOptions;
}

/** Checks documents before they are written, and returns the problems that it finds. */
export type DocumentCheck = (
  documents: readonly Document[],
  options: GenerateOptions,
) => readonly GenerateProblem[];

/**
 * Generates the documents of one target and checks them. Returns none if there is an error. Pure.
 *
 * @param checks checks of all documents, in addition to the lints of the policy itself
 */
export function generate(wish: GenerateRequest, checks: readonly DocumentCheck[]): Generated {
  const { target, policy } = wish;
  const { runbookUrl = policy.proxies.runbookUrl } = wish.options;
  const options = runbookUrl === undefined ? wish.options : { ...wish.options, runbookUrl };
  const row = targets.get(target);
  assert(row !== undefined, "the table has every target");
  const { documents, problems } = row.generate(policy, options);
  const found = [...problems, ...(row.isOfProxies ? lintPolicy(policy) : [])];
  // Problems of incomplete documents would only follow from errors that are already reported.
  if (found.every(({ severity }) => severity !== "error")) {
    for (const check of [checkPaths, ...checks]) found.push(...check(documents, options));
  }
  const isWrong = found.some(({ severity }) => severity === "error");
  return { documents: isWrong ? [] : documents, problems: found };
}

/** Names become file paths: each path must be safe and unique, even if case is ignored. */
function checkPaths(documents: readonly Document[]): readonly GenerateProblem[] {
  const seen = new Set<string>();
  return documents.flatMap(({ path }) => {
    const isTaken = seen.has(path.toLowerCase());
    seen.add(path.toLowerCase());
    if (!isTaken && isSafePath(path)) return [];
    return [
      rated({
        id: "HG455",
        spot: { service: undefined, path: [] },
        message: `the file name ${quoteText(path)} is not allowed${isTaken ? " twice" : ""}`,
        hint: "give services other names",
      }),
    ];
  });
}
