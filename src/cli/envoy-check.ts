import { readFileSync } from "node:fs";
import { readEnvoyImage } from "../app/envoy-image.js";
import { exitCodes } from "../app/failure.js";
import { readErrorWords } from "../app/policy-files.js";
import { formatJsonPath } from "../generate/check/check-problem.js";
import { checkText, type TextProblem } from "../generate/check/check-text.js";
import { EnvoyApi } from "../generate/check/envoy-api.js";
import { visibleText } from "../policy/problem.js";
import { problemsMax } from "../policy/problem-log.js";
import type { CommandContext } from "./context.js";
import { many } from "./many.js";

/** What is checked, and how it is reported. */
export interface EnvoyCheck {
  readonly files: readonly string[];
  readonly format: "text" | "json";
  readonly context: CommandContext;
}

/**
 * Checks Envoy's configuration as people have it: strictly against its API and its rules, and for
 * what it takes and should not. Answers the exit code: warnings alone are none.
 */
export function checkEnvoyFiles({ files, format, context }: EnvoyCheck): number {
  const { output } = context;
  const api = new EnvoyApi(readEnvoyImage());
  const found: (TextProblem & { readonly file: string })[] = [];
  for (const file of new Set(files)) {
    let text: string;
    try {
      text = readFileSync(file === "-" ? 0 : file, "utf8");
    } catch (error) {
      output.err(`headgate check: ${visibleText(file)} cannot be read: ${readErrorWords(error)}`);
      return exitCodes.failure;
    }
    const name = file === "-" ? "<stdin>" : file;
    found.push(...checkText(text, api).map((problem) => ({ ...problem, file: name })));
  }
  const errors = found.filter(({ severity }) => severity === "error").length;
  if (format === "json") {
    const problems = found.map((problem) => ({ ...problem, path: formatJsonPath(problem.path) }));
    output.out(JSON.stringify({ ok: errors === 0, files: files.length, problems }, undefined, 2));
  } else output.out(asText(found, errors));
  return errors === 0 ? exitCodes.ok : exitCodes.invalidPolicy;
}

function asText(
  found: readonly (TextProblem & { readonly file: string })[],
  errors: number,
): string {
  if (found.length === 0) return "OK: nothing is wrong.";
  const texts = found.slice(0, problemsMax).map((problem) => {
    const { file, line, column, severity, id, path, message, hint } = problem;
    const place = `${visibleText(file)}:${line}:${column}`;
    return [
      visibleText(`${place}: ${severity} ${id} ${message}`),
      visibleText(`  at ${formatJsonPath(path)}`),
      visibleText(`  hint: ${hint}`),
    ].join("\n");
  });
  const more = found.length - problemsMax;
  if (more > 0) texts.push(`and ${more} more`);
  const counts = `${many(errors, "error")}, ${many(found.length - errors, "warning")}.`;
  return `${texts.join("\n")}\n\n${counts}`;
}
