import type { Command } from "commander";
import { EnforcePolicyResponseSchema } from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  type AdminCommandParts,
  addChangeFlags,
  type ChangeFlags,
  confirm,
  runAdmin,
} from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { policyText } from "../policy/policy-report.js";
import type { CommandContext } from "../terminal/context.js";
import { nothingBeside } from "./shadow.js";

/** Adds `headgate enforce`, which makes the shadow policy the active one. */
export function addEnforce(program: Command, context: CommandContext): void {
  const command = program.command("enforce").description("activate the shadow policy");
  addAdminCommandFlags(
    addChangeFlags(command, "the version of the policy to replace; default: the current one"),
    {
      examples: `
  headgate enforce --reason "nobody was hurt"`,
    },
  ).action((flags: ChangeFlags) => runAdmin(command, context, (call) => enforce(flags, call)));
}

async function enforce(flags: ChangeFlags, call: AdminCommandParts): Promise<void> {
  const { client, context, printer } = call;
  const { policy, shadow } = await client.policies.getPolicy({});
  if (shadow === undefined) throw nothingBeside();
  await confirm(context, flags.yes, `Activate ${policyText(shadow)}?`);
  const expectedVersion = flags.expectedVersion ?? policy?.version ?? "";
  const answer = await client.policies.enforcePolicy({
    expectedVersion,
    reason: flags.reason,
    shadowVersion: shadow.version,
  });
  printer.print(EnforcePolicyResponseSchema, answer, ({ policy: now }) => [
    `Active: ${now === undefined ? "nothing" : policyText(now)}`,
  ]);
}
