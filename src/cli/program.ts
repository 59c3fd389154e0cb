import { Command, CommanderError } from "commander";
import { exitCodes } from "../app/failure.js";
import { readVersion } from "../app/version.js";
import { addCheck } from "./check.js";
import type { CommandContext } from "./context.js";
import { addDemo } from "./demo.js";
import { type Output, processOutput } from "./output.js";
import { addServe } from "./serve.js";

/** Runs the command line and answers the exit code: 0 ok, 1 failure, 2 usage, 3 invalid policy. */
export async function runCli(
  args: readonly string[],
  output: Output = processOutput,
): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const exitWith = (code: number): void => {
    exitCode = code;
  };
  const program = createProgram({ output, env: process.env, exitWith });
  try {
    await program.parseAsync([...args], { from: "user" });
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    // Help that was asked for ends this way too.
    return thrown.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  }
  return exitCode;
}

function createProgram(context: CommandContext): Command {
  const { output } = context;
  const program = new Command("headgate")
    .description("Decides, for fleets of Envoy proxies, which requests go in.")
    .version(readVersion(), "-v, --version", "print the version")
    .helpCommand("help [command]", "show a command's options and examples")
    .showHelpAfterError("Run `headgate help` for commands and examples.")
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.err })
    .addHelpText(
      "after",
      `
Examples:
  headgate demo                                a first look, with a real Envoy in front
  headgate check policy.yaml                   is the policy right?
  headgate serve --policy policy.yaml          the service: gRPC on 8081, HTTP on 8080
  REDIS_URL=redis:6379 headgate serve          limits shared by all replicas

Exit codes: 0 ok, 1 failure, 2 usage, 3 invalid policy.`,
    );
  addServe(program, context);
  addDemo(program, context);
  addCheck(program, context);
  program
    .command("version")
    .description("print the version of this program and of Node")
    .action(() => output.out(`headgate ${readVersion()} (node ${process.versions.node})`));
  for (const command of program.commands) command.copyInheritedSettings(program);
  return program;
}
