import { type Command, Option } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import type { PolicyFileStyle } from "../../app/config/policy-files.js";
import { decisionOptionRows } from "../../app/options/decision-options.js";
import { type OptionRow, optionFlag, type ParsedOption } from "../../app/options/option.js";
import { countRegions, regionOptionRows } from "../../app/options/region-options.js";
import { policyStartOptionRows } from "../../app/options/xds-options.js";
import { many } from "../../core/base/many.js";
import type { LimitDefaults } from "../../core/limits/limit.js";
import { rated } from "../../generate/base/generate-problems.js";
import { lintPaths } from "../../generate/lint-paths.js";
import { compareWithReference } from "../../policy/diff/comparison.js";
import { type ParsedPolicy, type PolicyText, parsePolicy } from "../../policy/parse.js";
import { measurePolicy } from "../../policy/policy-size.js";
import { formatProblems, problemRows, visibleText } from "../../policy/problems/problem.js";
import {
  formatLocated,
  type LocatedProblem,
  locateProblems,
} from "../generate/located-problems.js";
import { readPolicyArgument } from "../input/policy-argument.js";
import { readFilesOrInput } from "../input/policy-texts.js";
import { reportFormatOption } from "../input/report-format.js";
import type { CommandContext } from "../terminal/context.js";
import { renderBudgets, summarizeBudgets } from "./budget-report.js";
import { renderQuotas, summarizeQuotas } from "./quota-report.js";
import { renderComparison } from "./ratelimit-report.js";
import { renderRooms, summarizeRooms } from "./room-report.js";
import { renderServices, summarizeServices } from "./service-report.js";

type CheckFormat = "text" | "json";

interface CheckOptions {
  readonly output: CheckFormat;
  readonly ratelimit?: string;
  readonly mergeDomainConfig?: string | true;
  readonly envoy?: true;
  readonly policy?: readonly string[];
}

/** Adds `headgate check`, which reads policy files of either dialect together. */
export function addCheck(program: Command, context: CommandContext): void {
  const command = program
    .command("check")
    .description("check policy files, of either dialect, as one policy")
    .argument("[FILE...]", "files, directories of *.yaml and *.yml files, or - for standard input")
    .addOption(reportFormatOption(["text", "json"]))
    .addOption(
      new Option(
        "--ratelimit <DIR>",
        "report differences for this directory of envoyproxy/ratelimit files",
      ),
    )
    .addOption(
      new Option(
        `--${optionFlag(mergeOption)} [true|false]`,
        `${mergeOption.docs} Default: ${mergeOption.defaultText}. (${mergeOption.env})`,
      ),
    )
    .addOption(new Option("--envoy", "check configuration of Envoy, or patches for it"))
    .addOption(
      new Option("--policy <FILE>", "with --envoy: compare with this policy; repeatable").argParser(
        (value: string, before: readonly string[] = []) => [...before, value],
      ),
    )
    .addHelpText("before", examplesText)
    .addHelpText("after", helpText)
    .action(async (given: readonly string[], said: CheckOptions) => {
      const { paths, options } = withoutFileAsFlag(given, said);
      const complain = (message: string): never => command.error(`error: ${message}`);
      if (options.envoy === true && (paths.length === 0 || options.ratelimit !== undefined)) {
        complain("--envoy needs files, and no --ratelimit");
      }
      if ((paths.length === 0) === (options.ratelimit === undefined)) {
        complain("pass files to check, or a directory with --ratelimit");
      }
      const { policy: policyPaths } = options;
      if (policyPaths !== undefined && options.envoy !== true) {
        complain("--policy needs --envoy; pass a policy to check as an argument");
      }
      if (options.envoy === true) {
        return context.exitWith(await checkEnvoy(paths, { ...options, context }));
      }
      const read = readSettings(options, context);
      if (read.kind === "problem") return complain(read.message);
      context.exitWith(await check(paths, { ...options, ...read.value, context }));
    });
}

/** Loads Envoy's API and the doctor's checks here, because checks of a policy need neither. */
async function checkEnvoy(
  files: readonly string[],
  { output: format, policy: paths, context }: CheckOptions & Pick<CheckParts, "context">,
): Promise<number> {
  const { checkEnvoyFiles } = await import("../doctor/envoy-check.js");
  if (paths === undefined) return checkEnvoyFiles({ files, format, context });
  const { policy } = await readPolicyArgument(paths, context.output);
  return checkEnvoyFiles({ files, format, context, policy });
}

const examplesText = `Examples:
  headgate check policy.yaml
  headgate check /srv/runtime_data/current/config
  headgate check -o json policy.yaml | jq .problems
  headgate check --ratelimit /srv/runtime_data/current/config
  headgate check --envoy /etc/envoy/envoy.yaml
  headgate check --envoy envoy.yaml --policy policy.yaml
  kubectl get configmap policy -o jsonpath='{.data.policy\\.yaml}' | headgate check -`;

const helpText = `
Each problem starts with file:line:column and an id. Files are checked together, as the service
reads them: a domain may be in one file only, unless MERGE_DOMAIN_CONFIG is true. A valid policy may
have warnings, such as limits below a bypassed prefix. The report of --ratelimit follows
HEADGATE_ALGORITHM and HEADGATE_ON_STORE_FAILURE. Limits with \`spread: global\` are checked for the
regions in HEADGATE_REGION_STORES, or for two.

With --envoy each file is a bootstrap, or Kubernetes objects that contain parts of one. What Envoy
would reject is an error, and so are many settings that Envoy accepts but does not enforce.
With --policy each bootstrap is also compared with the policy, as \`headgate doctor\` compares a
running Envoy: a wrong domain, a missing filter, a timeout that is too short.

Exit codes: 0 valid, 1 a file cannot be read, 2 usage, 3 invalid.`;

/** Restores a path that a flag with an optional value has taken as its value. */
function withoutFileAsFlag(
  paths: readonly string[],
  options: CheckOptions,
): { readonly paths: readonly string[]; readonly options: CheckOptions } {
  const { mergeDomainConfig: value } = options;
  if (typeof value !== "string" || mergeOption.parse(value).kind === "value") {
    return { paths, options };
  }
  return { paths: [value, ...paths], options: { ...options, mergeDomainConfig: true } };
}

/** The service's own setting. */
const mergeOption = policyStartOptionRows.mergesDomains;

/** Settings that the service would read from its environment. */
interface CheckSettings {
  readonly mergesDomains: boolean;
  readonly defaults: LimitDefaults;
  /** Undefined: unknown here. */
  readonly regionCount: number | undefined;
}

/** The flag takes precedence over the environment. Its value is optional. */
function readSettings(
  { mergeDomainConfig }: CheckOptions,
  { env }: CommandContext,
): ParsedOption<CheckSettings> {
  const merge = readSetting(mergeOption, mergeDomainConfig ?? env[mergeOption.env]);
  if (merge.kind === "problem") return merge;
  const { algorithm: algorithmOption, onStoreFailure: failureOption } = decisionOptionRows;
  const algorithm = readSetting(algorithmOption, env[algorithmOption.env]);
  if (algorithm.kind === "problem") return algorithm;
  const failure = readSetting(failureOption, env[failureOption.env]);
  if (failure.kind === "problem") return failure;
  const defaults = { algorithm: algorithm.value, onStoreFailure: failure.value };
  const stores = env[regionOptionRows.regionStores.env];
  const regionCount = stores === undefined ? undefined : countRegions(stores);
  return { kind: "value", value: { mergesDomains: merge.value, defaults, regionCount } };
}

/** An empty text counts as absent. */
function readSetting<T>(row: OptionRow<T>, given: string | true | undefined): ParsedOption<T> {
  if (given === undefined || given === "") return { kind: "value", value: row.defaultValue };
  const parsed = row.parse(String(given));
  if (parsed.kind === "value") return parsed;
  return { kind: "problem", message: `${row.env} ${parsed.message}` };
}

interface CheckParts extends CheckOptions, CheckSettings {
  readonly context: CommandContext;
}

async function check(paths: readonly string[], parts: CheckParts): Promise<number> {
  const { output: format, ratelimit, mergesDomains, defaults, regionCount, context } = parts;
  const { output } = context;
  const { sources, unreadable } = await (ratelimit === undefined
    ? readAll(paths, "yamlFiles")
    : readAll([ratelimit], "allButDotFiles"));
  if (unreadable.length > 0) {
    for (const message of unreadable) output.err(`headgate check: ${visibleText(message)}`);
    return exitCodes.failure;
  }
  const only = ratelimit === undefined ? {} : { onlyDialect: "ratelimit" as const };
  const known = regionCount === undefined ? {} : { regionCount };
  const parsed = parsePolicy(sources, { mergesDomains, defaults, ...known, ...only });
  const comparison =
    ratelimit !== undefined && parsed.kind === "policy"
      ? compareWithReference(parsed.rules)
      : undefined;
  if (format === "json") {
    output.out(JSON.stringify({ ...asJson(sources, parsed), ...comparison }, undefined, 2));
  } else {
    const columnsMax = context.terminal.columns() ?? Number.POSITIVE_INFINITY;
    const report = comparison === undefined ? [] : [renderComparison(comparison, columnsMax)];
    const services = parsed.kind === "policy" ? renderServices(parsed.services) : "";
    const quotas = parsed.kind === "policy" ? renderQuotas(parsed.quotas) : "";
    const rooms = parsed.kind === "policy" ? renderRooms(parsed.waitingRooms) : "";
    const warnings = parsed.kind === "policy" ? formatLocated(warningsOf(parsed)) : "";
    const budgets = parsed.kind === "policy" ? renderBudgets(parsed) : "";
    const parts = [asText(sources, parsed), services, quotas, rooms, budgets, warnings, ...report];
    output.out(parts.filter((part) => part !== "").join("\n\n"));
  }
  return parsed.kind === "policy" ? exitCodes.ok : exitCodes.invalidPolicy;
}

interface ReadFiles {
  readonly sources: readonly PolicyText[];
  readonly unreadable: readonly string[];
}

async function readAll(paths: readonly string[], style: PolicyFileStyle): Promise<ReadFiles> {
  const sources: PolicyText[] = [];
  const unreadable: string[] = [];
  for (const path of new Set(paths)) {
    const read = await readFilesOrInput(path, style);
    if (read.kind === "sources") sources.push(...read.sources);
    else unreadable.push(read.message);
  }
  return { sources, unreadable };
}

/** Returns warnings: valid, but probably unintended, or with a wider effect than intended. */
function warningsOf(parsed: Extract<ParsedPolicy, { kind: "policy" }>): readonly LocatedProblem[] {
  const odd = parsed.warnings.problems.map((problem) => {
    const { remedy: hint } = problemRows[problem.id];
    return { ...problem, hint, severity: "warning", service: undefined, path: [] } as const;
  });
  return [...odd, ...locateProblems(lintPaths(parsed).map(rated), parsed.places)];
}

function asText(sources: readonly PolicyText[], parsed: ParsedPolicy): string {
  if (parsed.kind === "policy") {
    const { domainCount, ruleCount, limitCount, ...size } = measurePolicy(parsed);
    const parts = [
      many(sources.length, "file"),
      many(domainCount, "domain"),
      many(ruleCount, "rule"),
      many(limitCount, "limit"),
    ];
    if (size.serviceCount > 0) parts.push(many(size.serviceCount, "service"));
    if (size.roomCount > 0) parts.push(many(size.roomCount, "waiting room"));
    if (size.budgetCount > 0) parts.push(many(size.budgetCount, "budget"));
    return `OK: ${parts.join(", ")}.`;
  }
  const count = parsed.problems.length + parsed.unreportedCount;
  const summary = `${many(count, "problem")} in ${many(sources.length, "file")}.`;
  return `${formatProblems(parsed)}\n\n${summary}`;
}

function asJson(sources: readonly PolicyText[], parsed: ParsedPolicy): object {
  if (parsed.kind === "policy") {
    const services = summarizeServices(parsed.services);
    const quotas = summarizeQuotas(parsed.quotas);
    const warnings = warningsOf(parsed);
    const waitingRooms = summarizeRooms(parsed.waitingRooms);
    const budgets = summarizeBudgets(parsed);
    const found = { services, quotas, waitingRooms, budgets, problems: [], warnings };
    const { domainCount: domains, ruleCount: rules, limitCount: limits } = measurePolicy(parsed);
    return { ok: true, files: sources.length, domains, rules, limits, ...found };
  }
  const { problems, unreportedCount } = parsed;
  return { ok: false, files: sources.length, problems, unreportedCount };
}
