import type { Command } from "commander";
import {
  GetFleetResponseSchema,
  ListServicesResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  addFleetViewFlags,
  type FleetViewFlags,
  noteSilent,
  runAdmin,
} from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import type { CommandContext } from "../terminal/context.js";
import { drawFleet, drawServices } from "./services-report.js";

/** Adds `headgate services`: the admission of each service, and how full it is. */
export function addServices(program: Command, context: CommandContext): void {
  const command = program
    .command("services")
    .description("list services: their concurrency, gate and refusals");
  addAdminCommandFlags(addFleetViewFlags(command), {
    examples: `
  headgate services
  headgate services -o json | jq '.services[] | {name, gate, waiting}'`,
    notes: `
Each replica has a row. If Envoys share a limit, the row \`all\` shows the
fleet, and the rows below it each replica. \`shed\` and \`refused\` are refusals
of Headgate, in the last 10 s and since it started. \`overflow\` is what circuit
breakers of Envoys refuse before they call Headgate. They know no classes
except \`HIGH\`, the part of the limit that is reserved for critical requests.
A second table shows what load signals read: by key, and when their source last
answered. \`headgate fleet\` shows the shares of Envoys, and \`headgate gate\`
the thresholds of a gate.`,
  }).action(({ thisReplica = false }: FleetViewFlags) =>
    runAdmin(command, context, async (call) => {
      const answer = await call.client.fleet.listServices({ thisReplica });
      call.printer.print(ListServicesResponseSchema, answer, drawServices);
      noteSilent(call, answer.silentReplicas);
    }),
  );
}

/** Adds `headgate fleet`: replicas, their leader, and the shares of Envoys. */
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
