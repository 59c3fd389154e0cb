import { Command, CommanderError } from "commander";
import { exitCodes } from "../app/base/failure.js";
import { optimizeLater } from "../app/base/v8-flags.js";
import { readVersion } from "../app/base/version.js";
import { addCommands } from "./commands.js";
import { CommandFailure } from "./terminal/command-failure.js";
import { type CommandContext, type Output, processOutput } from "./terminal/context.js";
import { processTerminal } from "./terminal/terminal.js";

/** Environment of a command line. */
export type ProgramEnvironment = Pick<CommandContext, "env" | "terminal" | "envoyApi">;

/** Commands that load most of the program later, and therefore run without `optimizeLater`. */
const services: readonly string[] = ["serve", "demo"];

/**
 * Runs the command line and returns the exit code: 0 ok, 1 failure, 2 usage, 3 invalid policy, 4
 * stale, 5 unreachable.
 */
export async function runCli(
  args: readonly string[],
  output: Output = processOutput,
  { env = process.env, terminal = processTerminal, envoyApi }: Partial<ProgramEnvironment> = {},
): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const exitWith = (code: number): void => {
    exitCode = code;
  };
  const program = await createProgram({ output, env, terminal, envoyApi, exitWith }, args[0]);
  let running = "";
  program.hook("preAction", (_program, command) => {
    running = commandPath(command);
    if (!services.includes(running)) optimizeLater();
  });
  try {
    await program.parseAsync([...args], { from: "user" });
  } catch (thrown) {
    if (thrown instanceof CommandFailure) {
      if (thrown.message !== "") output.err(`headgate ${running}: ${thrown.message}`);
      return thrown.exitCode;
    }
    if (!(thrown instanceof CommanderError)) throw thrown;
    // Requested help ends this way, too.
    return thrown.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  }
  return exitCode;
}

/** Returns a command's path as typed: `keys get`. */
function commandPath(command: Command): string {
  const names = [command.name()];
  for (let outer = command.parent; outer?.parent; outer = outer.parent) names.unshift(outer.name());
  return names.join(" ");
}

/**
 * Creates the command line in commander.
 *
 * @param word its first word, if only the command of that name is needed
 */
export async function createProgram(context: CommandContext, word?: string): Promise<Command> {
  const { output } = context;
  const program = new Command("headgate")
    .description("Rate limiting and admission control for Envoy fleets.")
    .version(readVersion(), "-v, --version", "print the version")
    .showHelpAfterError("Run `headgate help` for commands and examples.")
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.err })
    .configureHelp({ subcommandTerm })
    .addHelpText(
      "before",
      `Examples:
  headgate demo                              try it, with a real Envoy in front
  headgate check policy.yaml                 validate a policy
  headgate generate envoy policy.yaml        configuration for proxies, checked
  headgate serve --policy policy.yaml        gRPC on 8081, HTTP on 8080
  REDIS_URL=redis:6379 headgate serve        limits shared by all replicas
  headgate top                               callers with most requests, live
  headgate explain shop plan=free,user=ann   why is this call denied?
`,
    )
    .addHelpText(
      "after",
      `
Exit codes: 0 ok, 1 failure, 2 usage, 3 invalid policy, 4 stale files,
5 Headgate cannot be reached.`,
    );
  await addCommands(program, context, word);
  for (const command of program.commands) command.copyInheritedSettings(program);
  return program;
}

/** Returns a command's name and arguments. Options are left out, since all commands have them. */
function subcommandTerm(command: Command): string {
  const words = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [command.name(), ...words].join(" ");
}
