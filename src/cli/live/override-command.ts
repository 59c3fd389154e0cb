import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { sha256 } from "../../app/base/sha256.js";
import { formatEntries } from "../../core/limits/descriptor-text.js";
import {
  DeleteOverrideResponseSchema,
  type Override,
  OverrideSchema,
  SetOverrideResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  type AdminCommandParts,
  addChangeFlags,
  type ChangeFlags,
  confirm,
  runAdmin,
} from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { readExpectedVersion } from "../input/number-flags.js";
import { CommandFailure, usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { entriesHelp, parseEntries } from "../terminal/key-selector.js";
import { effectText, overrideSubject, overrideText, untilText } from "./keys-report.js";
import {
  type EffectFlags,
  type EndFlags,
  findOverride,
  type OverrideTarget,
  readEnd,
  readOverrideEffect,
} from "./overrides.js";

/** Flags shared by all commands that set or remove overrides. */
export interface OverrideFlags extends EndFlags, ChangeFlags {
  readonly limit?: string;
  readonly prefix?: true;
}

interface SetFlags extends OverrideFlags, EffectFlags {
  readonly remove?: true;
}

/** Adds `headgate keys override`. */
export function addOverride(keys: Command, context: CommandContext): void {
  const command = keys
    .command("override")
    .description("override the limit of keys for a time")
    .argument("<DOMAIN>", "its domain")
    .argument("<ENTRIES>", "its descriptor, such as plan=free,user=ann")
    .option("--hits <COUNT>", "this many hits in the limit's period")
    .option("--burst <COUNT>", "with --hits: this many at once; default: as --hits")
    .option("--times <FACTOR>", "a multiple of the limit: 2x, 0.5x");
  addOverrideFlags(command).option("--remove", "remove the override");
  addAdminCommandFlags(command, {
    examples: `
  headgate keys override shop plan=free,user=ann --times 2x --for 3d \\
    --reason "launch week"
  headgate keys override shop plan=free --prefix --hits 50 \\
    --until 2026-11-27T12:00:00Z --reason "sale"
  headgate keys override shop plan=free,user=ann --remove --reason "it is over"`,
    notes: `
An override is active on all replicas within a second. Buckets keep their state.
overrideMax of the policy bounds it. To replace an override, pass its version
with --expected-version.
${entriesHelp}`,
  }).action((domain: string, text: string, flags: SetFlags) =>
    runAdmin(command, context, async (call) => {
      const target = readTarget({ domain, text }, flags);
      if (flags.remove === true) return removeOverride(target, flags, call);
      return giveOverride({ target, effect: readOverrideEffect(flags) }, flags, call);
    }),
  );
}

/** Adds the flags that these commands share. */
export function addOverrideFlags(command: Command): Command {
  command
    .option("--limit <NAME>", "only this limit of its rule")
    .option("--prefix", "all descriptors with this prefix")
    .option("--for <DURATION>", "when it ends, from now: 3d, 12h30m")
    .option(
      "--until <TIME>",
      "when it ends: 2026-11-27T12:00:00Z, 2026-11-27 or friday (0:00 UTC)",
    );
  return addChangeFlags(command, "the version of the override to replace or remove");
}

/** Reads the keys of an override. */
export function readTarget(
  { domain, text }: { readonly domain: string; readonly text: string },
  { prefix, limit }: Pick<OverrideFlags, "prefix" | "limit">,
): OverrideTarget {
  const entries = parseEntries(text);
  return { domain, entries, isPrefix: prefix === true, limitName: limit ?? "" };
}

/** An override to set. */
interface WantedOverride {
  readonly target: OverrideTarget;
  readonly effect: NonNullable<MessageInitShape<typeof OverrideSchema>["effect"]>;
}

/**
 * Sets an override. Replaces an existing one only if its version is given.
 *
 * @throws CommandFailure
 */
export async function giveOverride(
  { target, effect }: WantedOverride,
  flags: OverrideFlags,
  { client, context, printer }: AdminCommandParts,
): Promise<void> {
  const expected =
    flags.expectedVersion === undefined ? 0n : readExpectedVersion(flags.expectedVersion);
  const end = readEnd(flags);
  const before = await findOverride(client, target);
  if (before !== undefined && expected === 0n) throw alreadyThere(before);
  const override = create(OverrideSchema, {
    // The id is the same for the same keys, so that concurrent changes conflict.
    id: before?.id ?? overrideId(target),
    ...target,
    entries: [...target.entries],
    effect,
    ...end,
    reason: flags.reason,
  });
  await confirm(
    context,
    flags.yes,
    `Give ${overrideSubject(override)}: ${effectText(override)} ${untilText(override)}?`,
  );
  const answer = await client.limits.setOverride({ override, expectedVersion: expected });
  printer.print(SetOverrideResponseSchema, answer, ({ override: given }) => {
    if (given === undefined) return ["Given."];
    const version = `It is version ${given.version}, active on all replicas within a second.`;
    return [`${overrideSubject(given)}`, `  ${overrideText(given)}`, version];
  });
}

/**
 * Removes an override.
 *
 * @throws CommandFailure
 */
export async function removeOverride(
  target: OverrideTarget,
  flags: OverrideFlags,
  { client, context, printer }: AdminCommandParts,
): Promise<void> {
  if (flags.for !== undefined || flags.until !== undefined) {
    throw usageFailure("--for and --until set when an override ends; --remove ends it now");
  }
  const before = await findOverride(client, target);
  if (before === undefined) {
    const what = `${target.domain} ${formatEntries(target.entries)}`;
    throw new CommandFailure(
      exitCodes.failure,
      `There is no override for ${what}${target.isPrefix ? " and all below" : ""}; ` +
        "`headgate keys overrides` lists the existing ones.",
    );
  }
  const { id, version } = before;
  const expected =
    flags.expectedVersion === undefined ? version : readExpectedVersion(flags.expectedVersion);
  await confirm(context, flags.yes, `Remove ${overrideText(before)}?`);
  const answer = await client.limits.deleteOverride({
    id,
    domain: target.domain,
    expectedVersion: expected,
    reason: flags.reason,
  });
  printer.print(DeleteOverrideResponseSchema, answer, () => [
    `Removed from ${overrideSubject(before)}: the policy's own limits apply again.`,
  ]);
}

function overrideId({ domain, entries, isPrefix, limitName }: OverrideTarget): string {
  const words = entries.flatMap(({ key, value }) => [key, value]);
  return `o-${sha256(JSON.stringify([domain, isPrefix, limitName, ...words])).slice(0, 16)}`;
}

function alreadyThere(override: Override): CommandFailure {
  return new CommandFailure(
    exitCodes.failure,
    `There is already an override, ${overrideText(override)}. To replace it, add ` +
      `--expected-version ${override.version}.`,
  );
}
