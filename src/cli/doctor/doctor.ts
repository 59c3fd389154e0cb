import { type Command, Option } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { createStyle, isColorWanted } from "../../app/base/style.js";
import { readVersion } from "../../app/base/version.js";
import { diagnose } from "../../doctor/diagnose.js";
import { doctorPolicyOf } from "../../doctor/diagnostic.js";
import { systemClock } from "../../host/clock.js";
import { visibleText } from "../../policy/problems/problem.js";
import { parseDurationMs } from "../../policy/text/duration.js";
import { collect } from "../input/collect.js";
import { readPolicyArgument } from "../input/policy-argument.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { addPrintFlags, type PrintFlags } from "../terminal/drawing.js";
import { renderPlain } from "../terminal/print.js";
import { gatherDoctorInput } from "./doctor-input.js";
import { countLooks, doctorAsPlain, renderDoctor } from "./doctor-report.js";
import { parseServerUrl, SourceFailure } from "./doctor-sources.js";

/** Maximum duration of `--watch`, in milliseconds. */
const watchMsMax = 600_000;

interface DoctorOptions extends PrintFlags {
  readonly envoy?: string;
  readonly configDump?: string;
  readonly stats?: string;
  readonly policy?: readonly string[];
  readonly headgate?: string;
  readonly cluster?: string;
  readonly watch?: string;
}

const defaultEnvoy = "http://127.0.0.1:9901";

/** Adds `headgate doctor`, which compares an Envoy with the policy and with Headgate's state. */
export function addDoctor(program: Command, context: CommandContext): void {
  const command = program
    .command("doctor")
    .description(
      "compare an Envoy with the policy and with Headgate, and list problems, worst first",
    )
    .option("--envoy <URL>", `the URL of Envoy's admin port; default ${defaultEnvoy}`)
    .option(
      "--config-dump <FILE>",
      "a file with the output of its /config_dump?include_eds, instead of --envoy",
    )
    .option(
      "--stats <FILE>",
      "with --config-dump: a file with the output of its /stats?format=json",
    )
    .option("--policy <FILE>", "a policy file or directory; repeatable", collect)
    .option("--headgate <URL>", "the URL of Headgate's HTTP port, such as http://127.0.0.1:8080")
    .option("--cluster <NAME>", "the cluster of Headgate, if doctor does not find it")
    .addOption(
      new Option("--watch <TIME>", "sample requests in flight for this long, such as 5s or 1m"),
    );
  addPrintFlags(command)
    .addHelpText("before", examplesText)
    .addHelpText("after", helpText)
    .action(async (options: DoctorOptions) => {
      context.exitWith(await doctor(options, { command, context }));
    });
}

const examplesText = `Examples:
  headgate doctor --policy policy.yaml
  headgate doctor --envoy http://127.0.0.1:9901 --policy policy.yaml \\
    --headgate http://127.0.0.1:8080
  headgate doctor --policy policy.yaml --watch 30s
  kubectl exec deploy/edge -- \\
    curl -s 'localhost:9901/config_dump?include_eds' > dump.json
  headgate doctor --config-dump dump.json --policy policy.yaml -o json
`;

const helpText = `
Reads only. A finding contains what doctor saw, with numbers, and what to do.
\`headgate help HG504\` explains its id. Passed checks are listed too, and checks
that could not run.

Exit codes: 0 no error found, 1 errors found or a file cannot be read, 2 usage,
3 invalid policy, 5 Envoy cannot be reached.`;

interface Call {
  readonly command: Command;
  readonly context: CommandContext;
}

async function doctor(options: DoctorOptions, { command, context }: Call): Promise<number> {
  const complain = (message: string): never => command.error(`error: ${message}`);
  const { configDump, envoy = defaultEnvoy, policy: paths = [], watch = "0s" } = options;
  if (configDump !== undefined && options.envoy !== undefined) {
    complain("--envoy and --config-dump exclude each other");
  }
  if (options.stats !== undefined && configDump === undefined) {
    complain("--stats needs --config-dump; with --envoy, doctor reads the statistics itself");
  }
  const watchMs = parseDurationMs(watch) ?? complain("--watch must be a duration, such as 5s");
  if (watchMs > watchMsMax) complain(`--watch is at most ${watchMsMax / 60_000}m`);
  if (watchMs > 0 && configDump !== undefined)
    complain("--watch needs --envoy, because files do not change");
  const readUrl = (flag: string, text: string): URL =>
    parseServerUrl(text) ??
    complain(`${flag} must be a URL such as ${defaultEnvoy}, without a password`);
  const source =
    configDump === undefined
      ? ({ kind: "envoy", url: readUrl("--envoy", envoy), watchMs } as const)
      : ({ kind: "files", configDump, stats: options.stats } as const);
  const headgate = options.headgate && readUrl("--headgate", options.headgate);
  const policy =
    paths.length === 0
      ? undefined
      : doctorPolicyOf((await readPolicyArgument(paths, context.output)).policy);
  try {
    const input = await gatherDoctorInput({
      source,
      headgate: headgate === "" ? undefined : headgate,
      policy,
      cluster: options.cluster,
      ownVersion: readVersion(),
      clock: systemClock,
      terminal: context.terminal,
    });
    const subject = visibleText(configDump ?? envoy);
    return report({ looks: diagnose(input), subject }, options, context);
  } catch (thrown) {
    if (!(thrown instanceof SourceFailure)) throw thrown;
    const exitCode = source.kind === "envoy" ? exitCodes.unreachable : exitCodes.failure;
    throw new CommandFailure(exitCode, thrown.message);
  }
}

function report(
  found: Parameters<typeof renderDoctor>[0],
  { output: format }: DoctorOptions,
  { output, env, terminal }: CommandContext,
): number {
  if (format === "table") {
    output.out(renderDoctor(found, createStyle(isColorWanted(env, terminal.isScreen))));
  } else output.out(renderPlain(doctorAsPlain(found), format));
  return countLooks(found.looks).errors === 0 ? exitCodes.ok : exitCodes.failure;
}
