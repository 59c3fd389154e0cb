import { type Command, Option } from "commander";
import { runDemo } from "../dev/demo.js";
import { type DemoFlags, demoFlagRows } from "../dev/demo-options.js";
import type { CommandContext } from "./context.js";

/** Adds `headgate demo`: Headgate, a real Envoy in front of it, an upstream and light traffic. */
export function addDemo(program: Command, context: CommandContext): void {
  const command = program
    .command("demo")
    .description("a first look: Headgate with a real Envoy in front, and traffic to watch")
    .addHelpText(
      "after",
      `
Everything listens on loopback and ends with Ctrl-C.

Examples:
  headgate demo
  headgate demo --quiet-traffic --envoy-port 10080
  headgate demo --policy my-policy.yaml`,
    );
  for (const { flags, docs } of demoFlagRows) command.addOption(new Option(flags, docs));
  command.action(async (flags: DemoFlags) => {
    context.exitWith(await runDemo({ flags, env: context.env }));
  });
}
