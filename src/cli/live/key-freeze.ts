import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { addAdminCommandFlags, addChangeFlags, runAdmin } from "../admin/admin-command.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { entriesHelp } from "../terminal/key-selector.js";
import { overrideText } from "./keys-report.js";
import {
  addOverrideFlags,
  giveOverride,
  type OverrideFlags,
  readTarget,
  removeOverride,
} from "./override-command.js";
import { findOverride } from "./overrides.js";

/** Adds `headgate keys freeze` and `unfreeze`. */
export function addFreezing(keys: Command, context: CommandContext): void {
  addFreeze(keys, context);
  addUnfreeze(keys, context);
}

function addFreeze(keys: Command, context: CommandContext): void {
  const command = keys
    .command("freeze")
    .description("deny all requests of a key")
    .argument("<DOMAIN>", "its domain")
    .argument("<ENTRIES>", "its descriptor, such as user=mallory");
  addAdminCommandFlags(addOverrideFlags(command), {
    examples: `
  headgate keys freeze shop user=mallory --reason "scraping, ticket 42"
  headgate keys freeze shop plan=trial --prefix --for 1h --reason "attack"`,
    notes: `
${entriesHelp}`,
  }).action((domain: string, text: string, flags: OverrideFlags) =>
    runAdmin(command, context, async (call) => {
      const target = readTarget({ domain, text }, flags);
      return giveOverride({ target, effect: { case: "isFrozen", value: true } }, flags, call);
    }),
  );
}

function addUnfreeze(keys: Command, context: CommandContext): void {
  const command = keys
    .command("unfreeze")
    .description("end a freeze")
    .argument("<DOMAIN>", "its domain")
    .argument("<ENTRIES>", "its descriptor, such as user=mallory")
    .option("--limit <NAME>", "only this limit of its rule")
    .option("--prefix", "the freeze covers all descriptors with this prefix");
  addAdminCommandFlags(addChangeFlags(command, "the version of the freeze"), {
    examples: `
  headgate keys unfreeze shop user=mallory --reason "they have stopped"`,
    notes: `
${entriesHelp}`,
  }).action((domain: string, text: string, flags: OverrideFlags) =>
    runAdmin(command, context, async (call) => {
      const target = readTarget({ domain, text }, flags);
      const before = await findOverride(call.client, target);
      if (before !== undefined && before.effect.case !== "isFrozen") {
        throw new CommandFailure(
          exitCodes.failure,
          `This is not a freeze: ${overrideText(before)}. \`headgate keys override ` +
            "--remove` removes it.",
        );
      }
      // What is taken away is what was looked at.
      const expectedVersion = flags.expectedVersion ?? before?.version.toString();
      const expected = expectedVersion === undefined ? {} : { expectedVersion };
      return removeOverride(target, { ...flags, ...expected }, call);
    }),
  );
}
