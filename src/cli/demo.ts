import { type Command, Option } from "commander";
import { type DemoFlags, demoFlagRows } from "../demo/demo-options.js";
import type { CommandContext } from "./terminal/context.js";
import { addHelpTexts } from "./terminal/help-texts.js";

/** Adds `headgate demo`: Headgate, a real Envoy in front of it, an upstream and light traffic. */
export function addDemo(program: Command, context: CommandContext): void {
  const command = program
    .command("demo")
    .description("try Headgate with a real Envoy in front and example traffic");
  addHelpTexts(command, {
    examples: `
  headgate demo
  headgate demo --quiet-traffic --envoy-port 10080
  headgate demo --policy my-policy.yaml`,
    notes: "\nEverything listens on loopback and stops with Ctrl-C.",
    exitCodes: "Exit codes: 0 stopped as requested, 1 failure, 2 usage, 3 invalid policy.",
  });
  for (const { flags, docs } of demoFlagRows) command.addOption(new Option(flags, docs));
  command.action(async (flags: DemoFlags) => {
    // Loaded here, because it includes the whole service, which other commands do not need.
    const { runDemo } = await import("../demo/demo.js");
    context.exitWith(await runDemo({ flags, env: context.env }));
  });
}
