import type { Command } from "commander";
import { ListServicesResponseSchema } from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  addAdminCommandFlags,
  addFleetViewFlags,
  type FleetViewFlags,
  noteSilent,
  runAdmin,
} from "../admin/admin-command.js";
import type { CommandContext } from "../terminal/context.js";
import { drawServices } from "./services-report.js";

/** Adds `headgate services`: what stands before each service, and how full it is. */
export function addServices(program: Command, context: CommandContext): void {
  const command = program
    .command("services")
    .description("list services: their concurrency, gate, and what is shed");
  addAdminCommandFlags(addFleetViewFlags(command), {
    examples: `
  headgate services
  headgate services -o json | jq '.services[] | {name, gate, waiting}'`,
    notes: `
Each replica has a row. Where Envoys share a limit, the row \`all\` has what is
the fleet's, and those below it what each replica has. \`shed\` and \`refused\`
are what Headgate refuses, now and since it started; \`overflow\` is what circuit
breakers of Envoys refuse before anybody is asked: they know no classes, but
that \`HIGH\` is the part of the limit that is kept for critical requests.
\`headgate fleet\` shows how Envoys share a limit; \`headgate gate\` when a gate
opens.`,
  }).action(({ thisReplica = false }: FleetViewFlags) =>
    runAdmin(command, context, async (call) => {
      const answer = await call.client.fleet.listServices({ thisReplica });
      call.printer.print(ListServicesResponseSchema, answer, drawServices);
      noteSilent(call, answer.silentReplicas);
    }),
  );
}
