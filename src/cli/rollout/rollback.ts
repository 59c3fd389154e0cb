import type { Command } from "commander";
import {
  type PolicyVersion,
  RollBackPolicyResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
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
import { safeText } from "../terminal/quantity.js";

/** Adds `headgate rollback`: returns to an earlier policy, or ends the shadow policy. */
export function addRollback(program: Command, context: CommandContext): void {
  const command = program
    .command("rollback")
    .description("activate an earlier policy again, or end the shadow policy")
    .argument("[VERSION]", "the version (`headgate history`); default: the previous one");
  addAdminCommandFlags(
    addChangeFlags(command, "the version of the policy to replace; default: the current one"),
    {
      examples: `
  headgate rollback --reason "too strict for partners"
  headgate rollback 3f2a91c0 --reason "back to last week"`,
      notes: "\nWithout VERSION it ends the shadow policy, if there is one.",
    },
  ).action((version: string | undefined, flags: ChangeFlags) =>
    runAdmin(command, context, (call) => rollBack(version, flags, call)),
  );
}

async function rollBack(
  version: string | undefined,
  flags: ChangeFlags,
  { client, context, printer }: AdminCommandParts,
): Promise<void> {
  const { policy: before, shadow } = await client.policies.getPolicy({});
  const ended = version === undefined ? shadow : undefined;
  await confirm(context, flags.yes, questionOf(version, ended));
  const answer = await client.policies.rollBackPolicy({
    version: version ?? "",
    expectedVersion: flags.expectedVersion ?? before?.version ?? "",
    reason: flags.reason,
  });
  printer.print(RollBackPolicyResponseSchema, answer, ({ policy }) => [
    ...(ended === undefined ? [] : [`Ended the shadow policy: ${policyText(ended)}`]),
    ...(policy === undefined ? [] : [`Active: ${policyText(policy)}`]),
  ]);
}

/** Without a version, it only ends the shadow policy if there is one. */
function questionOf(version: string | undefined, ended: PolicyVersion | undefined): string {
  if (ended !== undefined) return `End ${policyText(ended)}, the shadow policy?`;
  return version === undefined
    ? "Go back to the previous policy?"
    : `Go back to policy ${safeText(version)}?`;
}
