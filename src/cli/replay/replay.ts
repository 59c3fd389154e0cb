import { type Command, Option } from "commander";
import { keepNewObjectsYoung } from "../../app/base/collector.js";
import { exitCodes } from "../../app/base/failure.js";
import { readErrorWords } from "../../app/config/policy-files.js";
import { isServiceError } from "../../core/base/errors.js";
import type { Policy } from "../../policy/policy.js";
import { visibleText } from "../../policy/problems/problem.js";
import type { AskablePart } from "../../policy/services/descriptor-parts.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { ServiceDescriptor } from "../../policy/services/service-rate-limit.js";
import { askedOnce } from "../../policy/services/service-rate-limit.js";
import { findNearestName } from "../../policy/text/nearest-name.js";
import { wantedFacts } from "../../simulate/asked-service.js";
import { type LogFormat, logFormats } from "../../simulate/log-reader.js";
import { type NamedLogOptions, readNames } from "../../simulate/named-log.js";
import { collect } from "../input/collect.js";
import { readPolicyArgument } from "../input/policy-argument.js";
import { reportFormatOption } from "../input/report-format.js";
import type { CommandContext } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";
import { LogRun } from "./log-run.js";
import { renderReplay } from "./replay-report.js";

interface ReplayOptions {
  readonly policy: readonly string[];
  readonly format: LogFormat;
  readonly domain?: string;
  readonly descriptor?: readonly string[];
  readonly field?: readonly string[];
  readonly output: "table" | "json";
}

/** Names that a message tells. */
const namesShownMax = 20;

/** Adds `headgate replay`: what a policy would have made of an access log. */
export function addReplay(program: Command, context: CommandContext): void {
  const command = program
    .command("replay")
    .description("run an access log through a policy, to see what it would have limited, and when")
    .argument("<LOG...>", "access logs, plain or gzip; - is standard input")
    .requiredOption("--policy <FILE>", "a policy file or directory; repeatable", collect)
    .addOption(
      new Option("--format <format>", "the format of the log; auto detects it from its first lines")
        .choices([...logFormats])
        .default("auto"),
    )
    .option("--domain <DOMAIN>", "use this domain for every request, whatever its host")
    .option(
      "--descriptor <PARTS>",
      "with --domain: remote_address, user=@x-user (a header), plan=free; repeatable",
      collect,
    )
    .option("--field <NAME=FIELD>", "the name of a part or header in the log", collect)
    .addOption(reportFormatOption(["table", "json"]));
  addHelpTexts(command, {
    examples: `
  headgate replay --policy new.yaml access.log
  headgate replay --policy new.yaml --domain shop --descriptor user=@x-user access.json.gz
  headgate replay --policy new.yaml --field x-user=user_id -o json access.csv
  kubectl logs deploy/edge | headgate replay --policy new.yaml -`,
    notes:
      "\nA request belongs to the service of the policy with its host, and is charged to " +
      "that service's\nrateLimit.descriptors. --domain and --descriptor replace this for " +
      "all requests. Nothing is charged in\na store: the policy's limits run in the time " +
      "of the log. Parts that only Envoy knows (metadata, CEL,\nsource clusters, regular " +
      "expressions) are skipped and counted.\n\n--field sets the log's name for a header " +
      "in descriptors, or for time, authority, method, path,\nflags, x-forwarded-for and " +
      "remote-address.",
    exitCodes: "Exit codes: 0 done, 1 a log cannot be read, 2 usage, 3 invalid policy.",
  }).action(async (logs: readonly string[], options: ReplayOptions) => {
    context.exitWith(await replay(logs, { options, command, context }));
  });
}

interface Call {
  readonly options: ReplayOptions;
  readonly command: Command;
  readonly context: CommandContext;
}

async function replay(logs: readonly string[], call: Call): Promise<number> {
  const { options, context } = call;
  const { output } = context;
  const renamed = readRenamed(call);
  const forAll = readForAll(call);
  const { policy } = await readPolicyArgument(options.policy, output);
  if (options.domain !== undefined) checkDomain(options.domain, policy, call);
  const wanted = wantedFacts(forAll === undefined ? policy.services : [forAll]);
  const names: NamedLogOptions = { wanted, renamed };
  checkNames(names, call);
  keepNewObjectsYoung();
  const run = new LogRun({ policy, forAll, names, format: options.format });
  for (const path of logs) {
    const problem = await run.take(path).catch(wordsOf);
    if (problem === undefined) continue;
    output.err(`headgate replay: ${visibleText(path)}: ${visibleText(problem)}`);
    return exitCodes.failure;
  }
  const outcome = run.finish();
  if (options.output === "json") output.out(JSON.stringify(outcome, undefined, 2));
  else output.out(renderReplay(outcome, process.stdout.columns ?? 100));
  return exitCodes.ok;
}

function wordsOf(thrown: unknown): string {
  if (isServiceError(thrown)) return thrown.message;
  const code: unknown = Reflect.get(Object(thrown), "code");
  // What no system says is a mistake of ours.
  if (code === undefined) throw thrown;
  // Source: zlib, return codes.
  if (typeof code === "string" && code.startsWith("Z_")) {
    return "it is compressed, and corrupt or truncated";
  }
  return readErrorWords(thrown);
}

function checkDomain(domain: string, { domains }: Policy, { command }: Call): void {
  if (domains.has(domain)) return;
  const named = `error: --domain ${visibleText(domain)}: the policy has no such domain`;
  command.error(`${named}${meantText(domain, [...domains.keys()])}`);
}

/** Refuses names that nothing is read by: they would be passed over without a word. */
function checkNames(names: NamedLogOptions, { command }: Call): void {
  const known = readNames(names.wanted);
  for (const name of names.renamed.keys()) {
    if (known.includes(name)) continue;
    const named = `error: --field ${visibleText(name)}: unknown name`;
    command.error(`${named}${meantText(name, known)}`);
  }
}

/** What could have been meant by a name, or all that could be. */
function meantText(name: string, known: readonly string[]): string {
  const nearest = findNearestName(name, known);
  if (nearest !== undefined) return `; did you mean ${visibleText(nearest)}?`;
  const shown = known.slice(0, namesShownMax).map(visibleText).join(", ");
  const more = known.length > namesShownMax ? ", ..." : "";
  return known.length === 0 ? "" : `; known names: ${shown}${more}`;
}

function readRenamed({ options, command }: Call): ReadonlyMap<string, string> {
  const renamed = new Map<string, string>();
  for (const text of options.field ?? []) {
    const [name = "", ...rest] = text.split("=");
    if (name === "" || rest.length === 0) {
      command.error(
        `error: --field ${visibleText(text)}: write NAME=FIELD, such as x-user=user_id`,
      );
    }
    renamed.set(name.toLowerCase(), rest.join("="));
  }
  return renamed;
}

function readForAll({
  options: { domain, descriptor = [] },
  command,
}: Call): Pick<ServicePolicy, "name" | "rateLimit"> | undefined {
  if ((domain === undefined) !== (descriptor.length === 0)) {
    command.error("error: --domain and --descriptor belong together");
  }
  if (domain === undefined) return undefined;
  const descriptors = descriptor.map((text) => {
    const parsed = parseDescriptorText(text);
    if (parsed.kind === "problem") {
      return command.error(`error: --descriptor ${visibleText(text)}: ${parsed.message}`);
    }
    return parsed.descriptor;
  });
  return { name: "", rateLimit: { domain, descriptors, inExtProc: false } };
}

/** A descriptor that somebody wrote on a command line. */
type DescriptorText =
  | { readonly kind: "descriptor"; readonly descriptor: ServiceDescriptor }
  | { readonly kind: "problem"; readonly message: string };

/**
 * Reads the parts of a descriptor with commas between them: `remote_address`, `key=@header` or
 * `key=value`.
 *
 * Example: `plan=free,user=@x-user`.
 */
function parseDescriptorText(text: string): DescriptorText {
  const parts: AskablePart[] = [];
  for (const word of text.split(",")) {
    const mark = word.indexOf("=");
    if (word === "remote_address") {
      parts.push({ kind: "remoteAddress", key: word });
      continue;
    }
    const [key, value] = [word.slice(0, mark), word.slice(mark + 1)];
    if (mark < 1 || value === "" || value === "@") {
      const message = "write remote_address, key=@header or key=value, separated by commas";
      return { kind: "problem", message };
    }
    if (value.startsWith("@")) {
      parts.push({ kind: "header", header: value.slice(1).toLowerCase(), key });
    } else parts.push({ kind: "fixed", key, value });
  }
  return { kind: "descriptor", descriptor: askedOnce(parts) };
}
