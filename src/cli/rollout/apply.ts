import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { many } from "../../core/base/many.js";
import {
  type ApplyPolicyResponse,
  ApplyPolicyResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { type AdminCommandParts, confirm, runAdmin } from "../admin/admin-command.js";
import { addAdminCommandFlags, policyExitCodes } from "../admin/admin-flags.js";
import { readPolicyTexts } from "../input/policy-texts.js";
import { drawApplied, drawChanges, drawProblems } from "../policy/policy-report.js";
import { CommandFailure, usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";

interface ApplyFlags {
  readonly shadow?: true;
  readonly dryRun?: true;
  readonly reason?: string;
  readonly expectedVersion?: string;
  readonly yes?: true;
}

/** Adds `headgate apply`: activates a policy, or runs it as the shadow policy. */
export function addApply(program: Command, context: CommandContext): void {
  const command = program
    .command("apply")
    .description("apply a policy to all replicas, or run it as the shadow policy")
    .argument("<FILE...>", "policy files and directories, together one policy")
    .option("--shadow", "run it as the shadow policy, which reports but decides nothing")
    .option("--dry-run", "only print the changes")
    .option("--reason <TEXT>", "the reason, for the audit log; required without --dry-run")
    .option(
      "--expected-version <VERSION>",
      "the version of the policy to replace; default: the current one",
    )
    .option("--yes", "do not ask for confirmation");
  addAdminCommandFlags(command, {
    examples: `
  headgate apply policy.yaml --dry-run
  headgate apply policy.yaml --shadow --reason "half the free plan"
  headgate shadow
  headgate enforce --reason "nobody was hurt"
  headgate rollback --reason "somebody was"`,
    notes: `
Headgate refuses this if its policy comes from files or a control plane. Start
it with HEADGATE_POLICY_SOURCE=store. --shadow always works.`,
    exitCodes: policyExitCodes,
  }).action((paths: readonly string[], flags: ApplyFlags) =>
    runAdmin(command, context, (call) => apply(paths, flags, call)),
  );
}

async function apply(
  paths: readonly string[],
  flags: ApplyFlags,
  call: AdminCommandParts,
): Promise<void> {
  const { client, context, printer } = call;
  if (flags.dryRun !== true && (flags.reason ?? "").trim() === "") {
    throw usageFailure("--reason is required, for the audit log");
  }
  const { sources: files } = await readPolicyTexts(paths);
  const expectedVersion = flags.expectedVersion ?? (await currentVersion(call));
  const request = { files, expectedVersion, shadow: flags.shadow === true };
  const trial = await client.policies.applyPolicy({
    ...request,
    reason: flags.reason ?? "",
    dryRun: true,
  });
  if (trial.problems.length > 0 || flags.dryRun === true) {
    printer.print(ApplyPolicyResponseSchema, trial, ({ problems, changes, unreportedCount }) => {
      if (problems.length === 0) return ["Changes:", ...drawChanges(changes)];
      const more = unreportedCount > 0 ? [`and ${unreportedCount} more`] : [];
      return [...drawProblems(problems), ...more];
    });
    return endOf(trial);
  }
  if (context.terminal.canAsk && flags.yes !== true) {
    context.output.err(["Changes:", ...drawChanges(trial.changes)].join("\n"));
  }
  const where = flags.shadow === true ? "Run it as the shadow policy" : "Activate it";
  await confirm(context, flags.yes, `${where} (${many(trial.changes.length, "change")})?`);
  const answer = await client.policies.applyPolicy({
    ...request,
    reason: flags.reason ?? "",
    dryRun: false,
  });
  const how = flags.shadow === true ? "Shadow policy" : "Active";
  printer.print(ApplyPolicyResponseSchema, answer, (applied) => [
    ...(applied.problems.length > 0 ? drawProblems(applied.problems) : drawApplied(applied, how)),
    ...(applied.changes.length > 0 ? ["Changes:", ...drawChanges(applied.changes)] : []),
    ...(flags.shadow === true && applied.policy !== undefined ? ["", shadowNext] : []),
  ]);
  endOf(answer);
}

/** Sets only the exit code, because the problems have been printed. */
function endOf({ problems }: ApplyPolicyResponse): void {
  if (problems.length > 0) throw new CommandFailure(exitCodes.invalidPolicy, "");
}

const shadowNext =
  "`headgate shadow` shows its report, `enforce` activates it, `rollback` ends it.";

/** Returns the current version, which is replaced unless the user names another one. */
async function currentVersion({ client }: AdminCommandParts): Promise<string> {
  const { policy } = await client.policies.getPolicy({});
  return policy?.version ?? "";
}
