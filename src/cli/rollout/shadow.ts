import { Code, ConnectError } from "@connectrpc/connect";
import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { GetShadowReportResponseSchema } from "../../gen/headgate/admin/v1/admin_pb.js";
import { runAdmin } from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { drawShadowReport } from "../policy/policy-report.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";

/** Adds `headgate shadow`: what the shadow policy would decide differently. */
export function addShadow(program: Command, context: CommandContext): void {
  const command = program
    .command("shadow")
    .description("report what the shadow policy would have decided differently");
  addAdminCommandFlags(command, {
    examples: `
  headgate shadow
  headgate shadow -o json | jq '[.rules[].newlyDeniedCount] | add'`,
    notes: `
Counts are of all replicas, at most a second old. \`headgate apply --shadow\`
starts a shadow policy.`,
  }).action(() =>
    runAdmin(command, context, async ({ client, printer }) => {
      const report = await client.policies.getShadowReport({}).catch((thrown: unknown) => {
        const isNone = thrown instanceof ConnectError && thrown.code === Code.NotFound;
        throw isNone ? nothingBeside() : thrown;
      });
      printer.print(GetShadowReportResponseSchema, report, drawShadowReport);
    }),
  );
}

/** Returns the failure if there is no shadow policy. */
export function nothingBeside(): CommandFailure {
  return new CommandFailure(
    exitCodes.failure,
    "There is no shadow policy; start one with `headgate apply --shadow`.",
  );
}
