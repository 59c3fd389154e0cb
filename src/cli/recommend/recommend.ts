import { type Command, Option } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { sha256 } from "../../app/base/sha256.js";
import { createStyle, isColorWanted } from "../../app/base/style.js";
import { keepNewObjectsYoung } from "../../app/base/v8-flags.js";
import { systemRandom } from "../../host/clock.js";
import { type PolicyText, parsePolicy } from "../../policy/parse.js";
import { buildPolicy, type Policy } from "../../policy/policy.js";
import { formatProblems, visibleText } from "../../policy/problems/problem.js";
import { parsePeriod } from "../../policy/text/period.js";
import { joinServices } from "../../recommend/join-services.js";
import { addRule } from "../../recommend/new-rule.js";
import type { RecommendedPolicy } from "../../recommend/recommend.js";
import { recommendFromLogs, unreadableRatioMax } from "../../recommend/recommend-from-logs.js";
import { recommendFromSteps } from "../../recommend/recommend-from-steps.js";
import { proposes } from "../../recommend/recommendation.js";
import { recommendationHtml } from "../../recommend/report/html-report.js";
import { SeededRandom } from "../../simulate/engine/seeded-random.js";
import type { LoggedRequest } from "../../simulate/logged-request.js";
import { collect } from "../input/collect.js";
import { readPart } from "../input/number-flags.js";
import { readPolicyArgument } from "../input/policy-argument.js";
import { reportFormatOption } from "../input/report-format.js";
import { checkWritable, writeWholeFile } from "../input/whole-file.js";
import {
  addLogOptions,
  inOrderOfTime,
  type LogArguments,
  type LogOptions,
  readLogArguments,
  readLogs,
  readParts,
} from "../replay/log-options.js";
import { type LogCounts, LogRun } from "../replay/log-run.js";
import { CommandFailure, usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";
import { diffTexts } from "../terminal/text-diff.js";
import { type RecommendOutcome, renderRecommendation } from "./recommend-report.js";
import {
  addServiceFlags,
  chooseSource,
  chosenServices,
  queriesText,
  type ServiceFlags,
  type StepSource,
} from "./service-sources.js";

interface RecommendOptions extends LogOptions, ServiceFlags {
  readonly policy: readonly string[];
  readonly per?: string;
  readonly period: string;
  readonly refuseCallers: string;
  readonly refuseRequests: string;
  readonly headroom?: string;
  readonly showKeys?: true;
  readonly write?: string;
  readonly html?: string;
  readonly output: "table" | "json";
}

/** Maximum headroom. More would not be based on what callers did. */
const headroomMax = 100;

/** Adds `headgate recommend`: limits based on what callers did. */
export function addRecommend(program: Command, context: CommandContext): void {
  const command = addLogOptions(
    program
      .command("recommend")
      .description("propose limits from what callers and services did, as an edit of the policy")
      .argument("[LOG...]", "access logs, plain or gzip; they are read at least twice")
      .requiredOption("--policy <FILE>", "a policy file or directory; repeatable", collect),
  )
    .option("--per <PARTS>", "add a limit for remote_address, user=@x-user (a header), plan=free")
    .option(
      "--service <NAME>",
      "with --per: the service of the limit; otherwise: only this service",
    )
    .option("--period <PERIOD>", "with --per: the period of the limit", "1m")
    .option("--refuse-callers <RATIO>", "callers that may be refused something on a day", "0.01")
    .option("--refuse-requests <RATIO>", "requests of other callers that may be refused", "0.001")
    .option("--headroom <FACTOR>", "fit callers that send so many times as much")
    .option("--show-keys", "show callers by their keys instead of hashes")
    .addOption(
      new Option("--only <what>", "only limits, or only numbers of services").choices([
        "limits",
        "services",
      ]),
    )
    .option("--write <FILE>", "write the policy with the proposed numbers")
    .option("--html <FILE>", "write a report with plots, in one file")
    .addOption(reportFormatOption(["table", "json"]));
  addServiceFlags(command);
  addHelpTexts(command, {
    examples: `
  headgate recommend --policy policy.yaml access.log
  headgate recommend --policy policy.yaml --write new.yaml --html report.html access.log.*.gz
  headgate recommend --policy policy.yaml --per user=@x-user --period 10s access.json
  headgate recommend --policy policy.yaml --refuse-callers 0.001 --headroom 2 access.log
  headgate recommend --policy policy.yaml --prometheus https://prometheus:9090 --range 3d
  headgate recommend --policy policy.yaml --from-fleet --watch 10m --fixed`,
    notes: `
Requests meet the limits of the policy as in \`headgate replay\`. For each limit, the command
proposes the rate and burst with which at most --refuse-callers of the callers are refused on a day,
with headroom, and replays the log through the edited policy. Callers that need more than 10 times
what nine in ten need are left out; --refuse-requests is about all others. Periods stay. Callers
are shown as hashes that differ from run to run. Rotated logs can be given in any order; merge logs
of several Envoys by time first.

It proposes nothing for a rule with fewer than 1,000 requests, 20 callers or 1 hour. The default
headroom is how much more the busiest day needs alone, at least 1.25; and 2 with fewer than 3
days.

For each service, it looks for the number of requests in flight from which latency rises, and
proposes concurrency limits, queues, deadlines and thresholds of Envoy.

A Prometheus or a running fleet knows hits in steps of time. Limits are proposed from these for
rules with one bucket for all requests, and from a Prometheus also for rules with detailed_metric.
The token of a Prometheus is in HEADGATE_PROMETHEUS_TOKEN, or in the file of
HEADGATE_PROMETHEUS_TOKEN_FILE.

--write changes nothing but the proposed numbers. Those marked as optional need --fixed.`,
    exitCodes:
      "Exit codes: 0 done, 1 a log cannot be read or a file not be written, 2 usage, 3 invalid " +
      "policy,\n4 too little data to propose anything.",
  }).action(async (logs: readonly string[], options: RecommendOptions) => {
    context.exitWith(await recommend(logs, { options, command, context }));
  });
}

interface Call {
  readonly options: RecommendOptions;
  readonly command: Command;
  readonly context: CommandContext;
}

async function recommend(logs: readonly string[], call: Call): Promise<number> {
  const { options, context } = call;
  const { output, terminal, env } = context;
  const given = await readPolicyArgument(options.policy, output);
  if (options.showQueries === true) {
    output.out(queriesText(given.policy, options));
    return exitCodes.ok;
  }
  const source = chooseSource(logs, options, context);
  if (options.write !== undefined && given.sources.length > 1) {
    throw usageFailure("--write takes a policy of one file");
  }
  for (const path of [options.write, options.html]) {
    if (path !== undefined) await checkWritable(path);
  }
  const { joined, counts } =
    source === undefined
      ? await fromLogs(logs, given, call)
      : { joined: await recommendFromSource(source, given, options), counts: undefined };
  const outcome = outcomeOf(joined, given.sources, counts);
  const { recommendation } = outcome;
  if (options.html !== undefined) {
    await writeWholeFile(options.html, recommendationHtml(recommendation));
  }
  const [edited] = joined.sources;
  const hasProposals = proposes(recommendation);
  if (options.write !== undefined && edited !== undefined && hasProposals) {
    await writeWholeFile(options.write, edited.text);
  }
  if (options.output === "json") output.out(JSON.stringify(outcome, undefined, 2));
  else {
    const style = createStyle(isColorWanted(env, terminal.isScreen));
    output.out(renderRecommendation(outcome, style));
  }
  return hasProposals ? exitCodes.ok : exitCodes.stale;
}

type GivenPolicy = Awaited<ReturnType<typeof readPolicyArgument>>;

type Recommended = Extract<RecommendedPolicy, { kind: "recommended" }>;

async function fromLogs(
  logs: readonly string[],
  given: GivenPolicy,
  call: Call,
): Promise<{ readonly joined: Recommended; readonly counts: LogCounts }> {
  const { options } = call;
  if (logs.includes("-")) {
    throw usageFailure("a log is read at least twice; write standard input to a file first");
  }
  const fitting = readFitting(options);
  if (options.service !== undefined) chosenServices(given.policy, options);
  const { policy, sources } = options.per === undefined ? given : withNewRule(given, options, call);
  const logArguments = readLogArguments(policy, call, "wanted");
  keepNewObjectsYoung();
  const reading = new LogPasses(logs, options, logArguments);
  const recommended = await recommendFromLogs({
    given: given.sources,
    isFixed: options.fixed === true,
    only: options.only,
    isChosen: (service) =>
      options.per !== undefined || options.service === undefined || service === options.service,
    sources,
    policy,
    forAll: logArguments.forAll,
    headers: logArguments.names.wanted.headers,
    options: fitting,
    readLogs: (take) => reading.readOnce(take),
    digest: sha256,
    nameOf: namesOf(options),
    random: new SeededRandom(1),
  });
  return { joined: orFail(recommended), counts: reading.counts };
}

/** @throws CommandFailure if the texts cannot be edited */
function orFail(recommended: RecommendedPolicy): Recommended {
  if (recommended.kind === "recommended") return recommended;
  throw new CommandFailure(exitCodes.failure, visibleText(recommended.message));
}

async function recommendFromSource(
  observe: StepSource,
  { policy, sources }: GivenPolicy,
  options: RecommendOptions,
): Promise<Recommended> {
  if (options.per !== undefined) throw usageFailure("--per needs an access log");
  const fitting = readFitting(options);
  const observed = await observe(policy);
  const recommended = recommendFromSteps(observed.rules, {
    sources,
    options: fitting,
    nameOf: namesOf(options),
    random: new SeededRandom(1),
  });
  const isFixed = options.fixed === true;
  return orFail(joinServices(orFail(recommended), observed, { policy, isFixed }));
}

function outcomeOf(
  { recommendation, sources }: Extract<RecommendedPolicy, { kind: "recommended" }>,
  before: readonly PolicyText[],
  counts: LogCounts | undefined,
): RecommendOutcome {
  const edits = (proposes(recommendation) ? sources : []).flatMap(({ file, text }) => {
    const old = before.find((one) => one.file === file)?.text ?? "";
    const lines = diffTexts(old, text);
    return lines.length === 0 ? [] : [{ file, lines }];
  });
  return { recommendation, counts, edits };
}

function readFitting({ refuseCallers, refuseRequests, headroom }: RecommendOptions) {
  const factor = headroom === undefined ? undefined : Number(headroom);
  if (factor !== undefined && !(factor >= 1 && factor <= headroomMax)) {
    throw usageFailure(`--headroom must be a number from 1 to ${headroomMax}`);
  }
  return {
    refusedCallerRatioMax: readPart("--refuse-callers", refuseCallers),
    refusedRequestRatioMax: readPart("--refuse-requests", refuseRequests),
    headroom: factor,
  };
}

/** Adds a new rule to the policy. */
function withNewRule(
  given: { readonly policy: Policy; readonly sources: readonly PolicyText[] },
  { per = "", service, period }: RecommendOptions,
  { command, context }: Call,
): { readonly policy: Policy; readonly sources: readonly PolicyText[] } {
  const parts = readParts("--per", per, command);
  if (parsePeriod(period).kind === "unreadable") {
    throw usageFailure("--period must be a period such as 10s, 1m or 1h");
  }
  const added = addRule(given.sources, given.policy, { service, parts, period });
  if (added.kind === "problem") throw usageFailure(`--per: ${visibleText(added.message)}`);
  const parsed = parsePolicy(added.sources);
  if (parsed.kind === "policy") {
    return { sources: added.sources, policy: buildPolicy("new", parsed) };
  }
  context.output.err(formatProblems(parsed));
  throw usageFailure("--per: the policy cannot take this limit");
}

/** Reads logs several times. The first time reports their problems. */
class LogPasses {
  #paths: readonly string[];
  readonly #options: LogOptions;
  readonly #names: LogArguments["names"];
  #counts: LogCounts | undefined;

  constructor(paths: readonly string[], options: LogOptions, { names }: LogArguments) {
    this.#paths = paths;
    this.#options = options;
    this.#names = names;
  }

  get counts(): LogCounts {
    return this.#counts ?? { lineCount: 0, unreadableCount: 0 };
  }

  async readOnce(take: (request: LoggedRequest) => void): Promise<void> {
    const how = { names: this.#names, format: this.#options.format };
    if (this.#counts === undefined && this.#paths.length > 1) {
      this.#paths = await inOrderOfTime(this.#paths, how);
    }
    const run = new LogRun({ ...how, take });
    await readLogs(run, this.#paths);
    if (this.#counts !== undefined) return;
    this.#counts = run.counts;
    const { lineCount, unreadableCount, firstUnreadable = "" } = run.counts;
    if (lineCount === 0) {
      const path = visibleText(this.#paths.join(", "));
      const words = "empty, or no line has less than 65,536 characters; a log has a line a request";
      throw new CommandFailure(exitCodes.failure, `${path}: ${words}`);
    }
    if (unreadableCount / lineCount <= unreadableRatioMax) return;
    const part = `${Math.round((100 * unreadableCount) / lineCount)} % of the lines`;
    throw new CommandFailure(
      exitCodes.failure,
      `${visibleText(firstUnreadable)}: ${part} cannot be read, this one first; ` +
        "leave them out, or give each format a command of its own with --format",
    );
  }
}

/** Returns keys, or pseudonyms that contain a secret of this run, so that they reveal no key. */
function namesOf({ showKeys }: RecommendOptions): (text: string) => string {
  if (showKeys === true) return (text) => text;
  const secret = systemRandom.id() + systemRandom.id();
  return (text) => `caller-${sha256(`${secret} ${text}`).slice(0, 8)}`;
}
