import type { Command } from "commander";
import {
  type GateThresholds,
  GetGateThresholdsResponseSchema,
  SetGateThresholdsResponseSchema,
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
import { usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { safeText } from "../terminal/quantity.js";

interface SetFlags extends ChangeFlags {
  readonly openBelow: string;
  readonly closeAbove: string;
}

/** Adds `headgate gate`: the thresholds at which a service's gate opens and closes. */
export function addGate(program: Command, context: CommandContext): void {
  const gate = program
    .command("gate")
    .description("show or change the thresholds of a gate")
    .addHelpText(
      "before",
      `Examples:
  headgate gate get checkout
  headgate gate set checkout --open-below 0.6 --close-above 0.9 \\
    --reason "a slow database"
  headgate gate clear checkout --reason "it is fast again"
  headgate gate get room:lobby
`,
    );
  addGet(gate, context);
  addSet(gate, context);
  addClear(gate, context);
}

function addGet(gate: Command, context: CommandContext): void {
  const command = gate
    .command("get")
    .description("show the active thresholds")
    .argument("<SERVICE>", "the name of the service, or room:NAME for a waiting room");
  addAdminCommandFlags(command, {
    examples: `
  headgate gate get checkout
  headgate gate get checkout -o json`,
  }).action((service: string) =>
    runAdmin(command, context, async ({ client, printer }) => {
      const answer = await client.fleet.getGateThresholds({ service });
      printer.print(GetGateThresholdsResponseSchema, answer, ({ thresholds }) => {
        return drawThresholds(thresholds);
      });
    }),
  );
}

function addSet(gate: Command, context: CommandContext): void {
  const command = gate
    .command("set")
    .description("change the thresholds on all replicas")
    .argument("<SERVICE>", "the name of the service, or room:NAME for a waiting room")
    .requiredOption(
      "--open-below <PART>",
      "the gate opens below this reject probability, such as 0.6",
    )
    .requiredOption(
      "--close-above <PART>",
      "the gate closes above this reject probability, such as 0.9",
    );
  addAdminCommandFlags(addChangeFlags(command, "the version of the thresholds to replace"), {
    examples: `
  headgate gate set checkout --open-below 0.6 --close-above 0.9 \\
    --reason "a slow database"`,
  }).action((service: string, flags: SetFlags) =>
    runAdmin(command, context, async (call) => {
      const openBelow = readRatio("--open-below", flags.openBelow);
      const closeAbove = readRatio("--close-above", flags.closeAbove);
      if (openBelow >= closeAbove) throw usageFailure("--open-below must be below --close-above");
      const when = `below ${openBelow}, close it above ${closeAbove}`;
      const question = `Open the gate of ${service} ${when}?`;
      return change({ service, openBelow, closeAbove, clear: false }, { flags, question }, call);
    }),
  );
}

function addClear(gate: Command, context: CommandContext): void {
  const command = gate
    .command("clear")
    .description("restore the thresholds of the policy")
    .argument("<SERVICE>", "the name of the service, or room:NAME for a waiting room");
  addAdminCommandFlags(addChangeFlags(command, "the version of the thresholds to replace"), {
    examples: `
  headgate gate clear checkout --reason "it is fast again"`,
  }).action((service: string, flags: ChangeFlags) =>
    runAdmin(command, context, (call) => {
      const question = `Restore the policy's thresholds for ${service}?`;
      const wanted = { service, openBelow: 0, closeAbove: 0, clear: true };
      return change(wanted, { flags, question }, call);
    }),
  );
}

interface Wanted {
  readonly service: string;
  readonly openBelow: number;
  readonly closeAbove: number;
  readonly clear: boolean;
}

/** Replaces the current thresholds, or the version that the user saw before. */
async function change(
  wanted: Wanted,
  { flags, question }: { readonly flags: ChangeFlags; readonly question: string },
  { client, context, printer }: AdminCommandParts,
): Promise<void> {
  const { service } = wanted;
  const expectedVersion =
    flags.expectedVersion === undefined
      ? ((await client.fleet.getGateThresholds({ service })).thresholds?.version ?? 0n)
      : readExpectedVersion(flags.expectedVersion);
  await confirm(context, flags.yes, safeText(question));
  const request = { ...wanted, expectedVersion, reason: flags.reason };
  const answer = await client.fleet.setGateThresholds(request);
  printer.print(SetGateThresholdsResponseSchema, answer, ({ thresholds }) => {
    return drawThresholds(thresholds);
  });
}

function readRatio(flag: string, text: string): number {
  const ratio = /^(?:\d{1,6}\.?\d{0,9}|\.\d{1,9})$/.test(text) ? Number(text) : Number.NaN;
  if (!(ratio > 0)) throw usageFailure(`${flag} must be a number above 0, such as 0.8`);
  return ratio;
}

function drawThresholds(thresholds: GateThresholds | undefined): readonly string[] {
  if (thresholds === undefined) return ["It has no gate."];
  const { service, openBelow, closeAbove, isOverridden, version } = thresholds;
  const whose = isOverridden ? `set by hand, version ${version}` : "from the policy";
  return [`${safeText(service)}: opens below ${openBelow}, closes above ${closeAbove} (${whose})`];
}
