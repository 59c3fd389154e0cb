import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { many } from "../../core/base/many.js";
import { formatEntries } from "../../core/limits/descriptor-text.js";
import {
  GetKeyResponseSchema,
  ListOverridesResponseSchema,
  ResetKeyResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  type AdminCommandParts,
  addChangeFlags,
  confirm,
  runAdmin,
} from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { entriesHelp, parseEntries } from "../terminal/key-selector.js";
import { eachPage } from "../terminal/pages.js";
import { drawKey, drawOverrides, overrideText } from "./keys-report.js";
import {
  addOverride,
  addOverrideFlags,
  giveOverride,
  type OverrideFlags,
  readTarget,
  removeOverride,
} from "./override-command.js";
import { findOverride } from "./overrides.js";

/** Adds `headgate keys`: the state of a key, and changes to its limits. */
export function addKeys(program: Command, context: CommandContext): void {
  const keys = program
    .command("keys")
    .description("show a key, or change its limits")
    .addHelpText(
      "before",
      `Examples:
  headgate keys get shop plan=free,user=ann
  headgate keys override shop plan=free,user=ann --times 2x --for 3d \\
    --reason "launch week"
  headgate keys freeze shop user=mallory --reason "scraping, ticket 42"
  headgate keys overrides
`,
    )
    .addHelpText("after", "\n`headgate keys help override` shows the options of each command.");
  addGet(keys, context);
  addReset(keys, context);
  addOverride(keys, context);
  addFreezing(keys, context);
  addOverrides(keys, context);
}

interface SelectorFlags {
  readonly limit?: string;
}

function addGet(keys: Command, context: CommandContext): void {
  const command = keys
    .command("get")
    .description("show the current state of a key")
    .argument("<DOMAIN>", "its domain")
    .argument("<ENTRIES>", "its descriptor, such as plan=free,user=ann")
    .option("--limit <NAME>", "only this limit of its rule");
  addAdminCommandFlags(command, {
    examples: `
  headgate keys get shop plan=free,user=ann
  headgate keys get shop plan=free,user=ann --limit pace -o json`,
    notes: `
${entriesHelp}`,
  }).action((domain: string, text: string, { limit = "" }: SelectorFlags) =>
    runAdmin(command, context, async ({ client, printer }) => {
      const key = { domain, entries: [...parseEntries(text)], limitName: limit };
      printer.print(GetKeyResponseSchema, await client.limits.getKey({ key }), drawKey);
    }),
  );
}

interface ResetFlags extends SelectorFlags {
  readonly reason: string;
  readonly yes?: true;
}

function addReset(keys: Command, context: CommandContext): void {
  const command = keys
    .command("reset")
    .description("reset a key")
    .argument("<DOMAIN>", "its domain")
    .argument("<ENTRIES>", "its descriptor, such as plan=free,user=ann")
    .requiredOption("--reason <TEXT>", "the reason, for the audit log")
    .option("--limit <NAME>", "only this limit of its rule")
    .option("--yes", "do not ask for confirmation");
  addAdminCommandFlags(command, {
    examples: `
  headgate keys reset shop plan=free,user=ann --reason "a loop of ours, fixed"`,
    notes: `
${entriesHelp}`,
  }).action((domain: string, text: string, flags: ResetFlags) =>
    runAdmin(command, context, (call) => reset({ domain, text, flags }, call)),
  );
}

async function reset(
  asked: { readonly domain: string; readonly text: string; readonly flags: ResetFlags },
  { client, context, printer }: AdminCommandParts,
): Promise<void> {
  const { domain, flags } = asked;
  const entries = [...parseEntries(asked.text)];
  await confirm(context, flags.yes, `Reset ${domain} ${formatEntries(entries)}?`);
  const answer = await client.limits.resetKey({
    key: { domain, entries, limitName: flags.limit ?? "" },
    reason: flags.reason,
  });
  printer.print(ResetKeyResponseSchema, answer, ({ resetCount, carriedLimitsLeft }) => [
    resetCount === 0 ? "Nothing was in use." : `Emptied ${many(resetCount, "bucket")}.`,
    ...(carriedLimitsLeft ? ["Limits that requests carry themselves are not changed."] : []),
  ]);
}

interface ListFlags {
  readonly beginsWith?: string;
  readonly rule?: string;
  readonly frozen?: true;
}

function addOverrides(keys: Command, context: CommandContext): void {
  const command = keys
    .command("overrides")
    .description("list overrides and freezes")
    .argument("[DOMAIN]", "only decisions of this domain")
    .option("--begins-with <ENTRIES>", "only descriptors with this prefix: plan=free")
    .option("--rule <LABEL>", "only those that change a limit of this rule; needs DOMAIN")
    .option("--frozen", "only freezes");
  addAdminCommandFlags(command, {
    examples: `
  headgate keys overrides
  headgate keys overrides shop -o yaml
  headgate keys overrides shop --begins-with plan=free
  headgate keys overrides --frozen`,
    notes: `
\`headgate rules\` lists the labels. \`headgate keys get\` shows which override
applies to a key.
${entriesHelp}`,
  }).action((domain: string | undefined, flags: ListFlags) =>
    runAdmin(command, context, (call) => listOverrides(domain ?? "", flags, call)),
  );
}

async function listOverrides(
  domain: string,
  { beginsWith, rule, frozen }: ListFlags,
  { client, printer }: AdminCommandParts,
): Promise<void> {
  const asked = {
    domain,
    beginsWith: beginsWith === undefined ? [] : [...parseEntries(beginsWith)],
    ruleLabel: rule ?? "",
    frozenOnly: frozen === true,
  };
  const isNarrow = beginsWith !== undefined || rule !== undefined || frozen === true;
  const all = create(ListOverridesResponseSchema);
  await eachPage(
    (page) => client.limits.listOverrides({ ...asked, ...page }),
    ({ overrides }) => {
      all.overrides.push(...overrides);
    },
  );
  printer.print(ListOverridesResponseSchema, all, (list, drawing) =>
    isNarrow && list.overrides.length === 0
      ? ["There are no such overrides."]
      : drawOverrides(list, drawing),
  );
}

/** Adds `headgate keys freeze` and `unfreeze`. */
function addFreezing(keys: Command, context: CommandContext): void {
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
      // Removes exactly the version that was just read.
      const expectedVersion = flags.expectedVersion ?? before?.version.toString();
      const expected = expectedVersion === undefined ? {} : { expectedVersion };
      return removeOverride(target, { ...flags, ...expected }, call);
    }),
  );
}
