import { Command, CommanderError } from "commander";
import { exitCodes } from "../app/failure.js";
import { readVersion } from "../app/version.js";
import { addChangeCommands, addLookCommands } from "./admin-commands.js";
import { addCheck } from "./check.js";
import { addCompletion } from "./completion.js";
import type { CommandContext } from "./context.js";
import { addDemo } from "./demo.js";
import { addDiff } from "./diff.js";
import { addDoctor } from "./doctor.js";
import { addFmt } from "./fmt.js";
import { addGenerate } from "./generate.js";
import { addHelp } from "./help.js";
import { addInit } from "./init.js";
import { type Output, processOutput } from "./output.js";
import { addReplay } from "./replay.js";
import { addSchema } from "./schema.js";
import { addServe } from "./serve.js";
import { processTerminal } from "./terminal.js";
import { addTest } from "./test.js";

/** What a command line finds around it. */
export type Surroundings = Pick<CommandContext, "env" | "terminal">;

/**
 * Runs the command line and answers the exit code: 0 ok, 1 failure, 2 usage, 3 invalid policy, 4
 * stale, 5 unreachable.
 */
export async function runCli(
  args: readonly string[],
  output: Output = processOutput,
  { env = process.env, terminal = processTerminal }: Partial<Surroundings> = {},
): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const exitWith = (code: number): void => {
    exitCode = code;
  };
  const program = createProgram({ output, env, terminal, exitWith });
  try {
    await program.parseAsync([...args], { from: "user" });
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    // Help that was asked for ends this way too.
    return thrown.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  }
  return exitCode;
}

/** The whole command line, as commander has it. */
export function createProgram(context: CommandContext): Command {
  const { output } = context;
  const program = new Command("headgate")
    .description("Decides, for fleets of Envoy proxies, which requests go in.")
    .version(readVersion(), "-v, --version", "print the version")
    .showHelpAfterError("Run `headgate help` for commands and examples.")
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.err })
    .configureHelp({ subcommandTerm })
    .addHelpText(
      "before",
      `Examples:
  headgate demo                              a first look, a real Envoy in front
  headgate check policy.yaml                 is the policy right?
  headgate generate envoy policy.yaml        configuration for proxies, checked
  headgate serve --policy policy.yaml        gRPC on 8081, HTTP on 8080
  REDIS_URL=redis:6379 headgate serve        limits shared by all replicas
  headgate top                               who asks most, live
  headgate explain shop plan=free,user=ann   why is this call refused?
`,
    )
    .addHelpText(
      "after",
      `
Exit codes: 0 ok, 1 failure, 2 usage, 3 invalid policy, 4 stale files,
5 no Headgate can be reached.`,
    );
  addCommands(program, context);
  for (const command of program.commands) command.copyInheritedSettings(program);
  return program;
}

/** Its name and what stands behind it: all commands have options. */
function subcommandTerm(command: Command): string {
  const words = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [command.name(), ...words].join(" ");
}

/** Adds all commands, in groups as help shows them. */
function addCommands(program: Command, context: CommandContext): void {
  program.commandsGroup("Run:");
  addServe(program, context);
  addDemo(program, context);
  program.commandsGroup("Write a policy:");
  addInit(program, context);
  addCheck(program, context);
  addFmt(program, context);
  addDiff(program, context);
  addTest(program, context);
  addReplay(program, context);
  addGenerate(program, context);
  addSchema(program, context);
  program.commandsGroup("Look at what runs:");
  addLookCommands(program, context);
  addDoctor(program, context);
  program.commandsGroup("Change what runs:");
  addChangeCommands(program, context);
  program.commandsGroup("More:");
  addCompletion(program, context);
  addHelp(program, context);
  program
    .command("version")
    .description("print the version of this program and of Node")
    .addHelpText("before", "Examples:\n  headgate version\n")
    .addHelpText("after", "\nExit codes: 0 printed, 2 usage.")
    .action(() => context.output.out(`headgate ${readVersion()} (node ${process.versions.node})`));
}
