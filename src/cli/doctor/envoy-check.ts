import { readFileSync } from "node:fs";
import { exitCodes } from "../../app/base/failure.js";
import { createStyle, isColorWanted } from "../../app/base/style.js";
import { readVersion } from "../../app/base/version.js";
import { readEnvoyImage } from "../../app/config/envoy-image.js";
import { readErrorWords } from "../../app/config/policy-files.js";
import { many } from "../../core/base/many.js";
import { diagnoseBootstrap } from "../../doctor/diagnose.js";
import { type Diagnostic, doctorPolicyOf } from "../../doctor/diagnostic.js";
import { readBootstrap } from "../../doctor/envoy-dump.js";
import { formatJsonPath } from "../../generate/base/check-problem.js";
import { checkText, readDocuments, type TextProblem } from "../../generate/check/check-text.js";
import { EnvoyApi } from "../../generate/check/envoy-api.js";
import type { Policy } from "../../policy/policy.js";
import { visibleText } from "../../policy/problems/problem.js";
import { problemsMax } from "../../policy/problems/problem-log.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { countLooks, doctorAsPlain, renderDoctor } from "./doctor-report.js";

/** Files to check, and the form of the report. */
interface EnvoyCheck {
  readonly files: readonly string[];
  readonly format: "text" | "json";
  readonly context: CommandContext;
  /** Policy that bootstraps are compared with; absent: no comparison. */
  readonly policy?: Policy;
}

/**
 * Checks Envoy configuration files: strictly against its API and its rules, and for settings that
 * Envoy accepts but should not get. Returns the exit code; warnings alone are no failure.
 */
export function checkEnvoyFiles({ files, format, context, ...given }: EnvoyCheck): number {
  const policy = given.policy && doctorPolicyOf(given.policy);
  const { output, env, terminal } = context;
  const compared: { readonly file: string; readonly looks: readonly Diagnostic[] }[] = [];
  const api = context.envoyApi ?? new EnvoyApi(readEnvoyImage());
  const found: (TextProblem & { readonly file: string })[] = [];
  for (const file of new Set(files)) {
    let text: string;
    try {
      text = readFileSync(file === "-" ? 0 : file, "utf8");
    } catch (error) {
      const words = `${visibleText(file)} cannot be read: ${readErrorWords(error)}`;
      throw new CommandFailure(exitCodes.failure, words);
    }
    const name = file === "-" ? "<stdin>" : file;
    found.push(...checkText(text, api).map((problem) => ({ ...problem, file: name })));
    if (policy === undefined) continue;
    const dumps = readDocuments(text).map(readBootstrap);
    const [dump] = dumps.filter((one) => one !== undefined);
    if (dump === undefined) {
      output.err(`headgate check: ${visibleText(name)} is not a bootstrap; not compared.`);
    } else {
      const looks = diagnoseBootstrap(dump, { policy, ownVersion: readVersion() });
      compared.push({ file: name, looks });
    }
  }
  const isWrong = ({ severity }: { readonly severity: string }) => severity === "error";
  const wrongCount = compared.reduce((sum, { looks }) => sum + countLooks(looks).errors, 0);
  const errors = found.filter(isWrong).length + wrongCount;
  if (format === "json") {
    const problems = found.map((problem) => ({ ...problem, path: formatJsonPath(problem.path) }));
    const reports = compared.map(({ file, looks }) => {
      return { file, ...doctorAsPlain({ looks, subject: file }) };
    });
    const doctor = policy === undefined ? {} : { compared: reports };
    const report = { ok: errors === 0, files: files.length, problems, ...doctor };
    output.out(JSON.stringify(report, undefined, 2));
  } else {
    const style = createStyle(isColorWanted(env, terminal.isScreen));
    const reports = compared
      .filter(({ looks }) => looks.length > 0)
      .map(({ file, looks }) => renderDoctor({ looks, subject: visibleText(file) }, style));
    // The findings of a comparison are in its report, which must not follow an OK.
    const own =
      found.length > 0 || reports.length === 0 ? [asText(found, errors - wrongCount)] : [];
    output.out([...own, ...reports].join("\n\n"));
  }
  return errors === 0 ? exitCodes.ok : exitCodes.invalidPolicy;
}

function asText(
  found: readonly (TextProblem & { readonly file: string })[],
  errors: number,
): string {
  if (found.length === 0) return "OK: no problems.";
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
