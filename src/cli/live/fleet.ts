import type { Command } from "commander";
import { GetFleetResponseSchema } from "../../gen/headgate/admin/v1/admin_pb.js";
import { runAdmin } from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import type { CommandContext } from "../terminal/context.js";
import { drawFleet } from "./services-report.js";

/** Adds `headgate fleet`: replicas, who leads them, and the shares of Envoys. */
export function addFleet(program: Command, context: CommandContext): void {
  const command = program
    .command("fleet")
    .description("show the replicas, who leads, and the share of each Envoy");
  addAdminCommandFlags(command, {
    examples: `
  headgate fleet
  headgate fleet -o json | jq '.services[].shares[] | {node, share}'`,
    notes: '\nAn Envoy with "elsewhere" is connected to another replica.',
  }).action(() =>
    runAdmin(command, context, async ({ client, printer }) => {
      printer.print(GetFleetResponseSchema, await client.fleet.getFleet({}), drawFleet);
    }),
  );
}
