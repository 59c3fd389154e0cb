import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { sha256 } from "../../app/base/sha256.js";
import { keepNewObjectsYoung } from "../../app/base/v8-flags.js";
import { defaultDefaults } from "../../core/limits/limit.js";
import type { LoggedRequest } from "../../simulate/logged-request.js";
import { Replay } from "../../simulate/replay.js";
import { collect } from "../input/collect.js";
import { readPolicyArgument } from "../input/policy-argument.js";
import { reportFormatOption } from "../input/report-format.js";
import type { CommandContext } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";
import { addLogOptions, type LogOptions, readLogArguments, readLogs } from "./log-options.js";
import { LogRun } from "./log-run.js";
import { renderReplay } from "./replay-report.js";

interface ReplayOptions extends LogOptions {
  readonly policy: readonly string[];
  readonly output: "table" | "json";
}

/** Adds `headgate replay`: what a policy would have decided for an access log. */
export function addReplay(program: Command, context: CommandContext): void {
  const command = addLogOptions(
    program
      .command("replay")
      .description(
        "run an access log through a policy, to see what it would have limited, and when",
      )
      .argument("<LOG...>", "access logs, plain or gzip; - is standard input")
      .requiredOption("--policy <FILE>", "a policy file or directory; repeatable", collect),
  ).addOption(reportFormatOption(["table", "json"]));
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
  const { policy } = await readPolicyArgument(options.policy, output);
  const { forAll, names } = readLogArguments(policy, call);
  keepNewObjectsYoung();
  const replayed = new Replay({ policy, forAll, switches: policyAlone, digest: sha256 });
  const take = (request: LoggedRequest): void => replayed.take(request);
  const run = new LogRun({ names, format: options.format, take });
  await readLogs(run, logs);
  const outcome = { ...run.counts, ...replayed.finish() };
  if (options.output === "json") output.out(JSON.stringify(outcome, undefined, 2));
  else output.out(renderReplay(outcome, process.stdout.columns ?? 100));
  return exitCodes.ok;
}

/** Only the policy's settings apply, not those of a process. */
const policyAlone = {
  isShadow: false,
  isQuota: false,
  chargesDenied: false,
  defaults: defaultDefaults,
};
