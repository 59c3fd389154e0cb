import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { ListPoliciesResponseSchema } from "../../gen/headgate/admin/v1/admin_pb.js";
import { runAdmin } from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { drawHistory } from "../policy/policy-report.js";
import type { CommandContext } from "../terminal/context.js";
import { eachPage } from "../terminal/pages.js";

/** Adds `headgate history`, which lists the policies that were active. */
export function addHistory(program: Command, context: CommandContext): void {
  const command = program
    .command("history")
    .description("list the policies that were active, newest first");
  addAdminCommandFlags(command, {
    examples: `
  headgate history
  headgate history -o json | jq -r '.policies[].version'`,
  }).action(() =>
    runAdmin(command, context, async ({ client, printer }) => {
      const policies: Awaited<ReturnType<typeof client.policies.listPolicies>>["policies"] = [];
      await eachPage(
        (page) => client.policies.listPolicies(page),
        (page) => {
          policies.push(...page.policies);
        },
      );
      const all = create(ListPoliciesResponseSchema, { policies });
      printer.print(ListPoliciesResponseSchema, all, drawHistory);
    }),
  );
}
