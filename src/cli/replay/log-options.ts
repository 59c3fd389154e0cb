import { type Command, Option } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { readErrorWords } from "../../app/config/policy-files.js";
import { isServiceError } from "../../core/base/errors.js";
import type { Policy } from "../../policy/policy.js";
import { visibleText } from "../../policy/problems/problem.js";
import type { AskablePart } from "../../policy/services/descriptor-parts.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { askedOnce } from "../../policy/services/service-rate-limit.js";
import { findNearestName } from "../../policy/text/nearest-name.js";
import { withBudgetFacts } from "../../recommend/budget-log.js";
import { wantedFacts } from "../../simulate/asked-service.js";
import { type LogFormat, logFormats } from "../../simulate/log-reader.js";
import { type NamedLogOptions, readNames } from "../../simulate/named-log.js";
import { parseParts } from "../../simulate/part-texts.js";
import { collect } from "../input/collect.js";
import { CommandFailure } from "../terminal/command-failure.js";
import { firstTimeUs, type LogRun } from "./log-run.js";

/** How logs are read, and which limits apply to their requests. */
export interface LogOptions {
  readonly format: LogFormat;
  readonly domain?: string;
  readonly descriptor?: readonly string[];
  readonly field?: readonly string[];
}

/** Arguments of a command line about logs. */
export interface LogArguments {
  /** Service whose limits apply to every request; undefined: as the policy's services say. */
  readonly forAll: Pick<ServicePolicy, "name" | "rateLimit"> | undefined;
  readonly names: NamedLogOptions;
}

/** Adds the options of a command that reads access logs. */
export function addLogOptions(command: Command): Command {
  return command
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
    .option("--field <NAME=FIELD>", "the name of a part or header in the log", collect);
}

interface LogCall {
  readonly options: LogOptions;
  readonly command: Command;
}

/**
 * Reads the options of `addLogOptions`. Invalid ones end the command as wrong usage.
 *
 * @param timing whether the durations of requests are read
 */
export function readLogArguments(
  policy: Policy,
  call: LogCall,
  timing: "wanted" | "unwanted" = "unwanted",
): LogArguments {
  const { domain } = call.options;
  const renamed = readRenamed(call);
  const forAll = readForAll(call);
  if (domain !== undefined) checkDomain(domain, policy, call);
  const facts = wantedFacts(forAll === undefined ? policy.services : [forAll]);
  const isOfPolicy = timing === "wanted" && forAll === undefined;
  const wanted = { ...(isOfPolicy ? withBudgetFacts(facts, policy) : facts), timing };
  const names: NamedLogOptions = { wanted, renamed };
  checkNames(names, call);
  return { forAll, names };
}

/**
 * Reads all logs.
 *
 * @throws CommandFailure if one cannot be read
 */
export async function readLogs(run: LogRun, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const problem = await run.take(path).catch(wordsOf);
    if (problem === undefined) continue;
    throw new CommandFailure(exitCodes.failure, `${visibleText(path)}: ${visibleText(problem)}`);
  }
}

/**
 * Sorts logs by their first requests, because the names of rotated logs have no common order.
 *
 * @throws CommandFailure if one cannot be read
 */
export async function inOrderOfTime(
  paths: readonly string[],
  how: Parameters<typeof firstTimeUs>[1],
): Promise<readonly string[]> {
  const starts: { readonly path: string; readonly startUs: number }[] = [];
  for (const path of paths) {
    const startUs = await firstTimeUs(path, how).catch((thrown: unknown) => {
      throw new CommandFailure(exitCodes.failure, `${visibleText(path)}: ${wordsOf(thrown)}`);
    });
    starts.push({ path, startUs: startUs ?? Number.POSITIVE_INFINITY });
  }
  return starts.sort((one, other) => one.startUs - other.startUs).map(({ path }) => path);
}

/** Maximum number of names in a message. */
const namesShownMax = 20;

function wordsOf(thrown: unknown): string {
  if (isServiceError(thrown)) return thrown.message;
  const code: unknown = Reflect.get(Object(thrown), "code");
  // An error without a system's code is a bug.
  if (code === undefined) throw thrown;
  // Source: zlib, return codes.
  if (typeof code === "string" && code.startsWith("Z_")) {
    return "it is compressed, and corrupt or truncated";
  }
  return readErrorWords(thrown);
}

function checkDomain(domain: string, { domains }: Policy, { command }: LogCall): void {
  if (domains.has(domain)) return;
  const named = `error: --domain ${visibleText(domain)}: the policy has no such domain`;
  command.error(`${named}${meantText(domain, [...domains.keys()])}`);
}

/** Refuses unknown names, which would otherwise be ignored silently. */
function checkNames(names: NamedLogOptions, { command }: LogCall): void {
  const known = readNames(names.wanted);
  for (const name of names.renamed.keys()) {
    if (known.includes(name)) continue;
    const named = `error: --field ${visibleText(name)}: unknown name`;
    command.error(`${named}${meantText(name, known)}`);
  }
}

/** Suggests the name that was probably meant, or lists all known names. */
function meantText(name: string, known: readonly string[]): string {
  const nearest = findNearestName(name, known);
  if (nearest !== undefined) return `; did you mean ${visibleText(nearest)}?`;
  const shown = known.slice(0, namesShownMax).map(visibleText).join(", ");
  const more = known.length > namesShownMax ? ", ..." : "";
  return known.length === 0 ? "" : `; known names: ${shown}${more}`;
}

function readRenamed({ options, command }: LogCall): ReadonlyMap<string, string> {
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
}: LogCall): Pick<ServicePolicy, "name" | "rateLimit"> | undefined {
  if ((domain === undefined) !== (descriptor.length === 0)) {
    command.error("error: --domain and --descriptor belong together");
  }
  if (domain === undefined) return undefined;
  const descriptors = descriptor.map((text) => askedOnce(readParts("--descriptor", text, command)));
  return { name: "", rateLimit: { domain, descriptors, inExtProc: false } };
}

/** Reads the parts of a descriptor. Invalid ones end the command as wrong usage. */
export function readParts(flag: string, text: string, command: Command): readonly AskablePart[] {
  const parts = parseParts(text);
  if (typeof parts !== "string") return parts;
  return command.error(`error: ${flag} ${visibleText(text)}: ${parts}`);
}
