import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  ListQuotaPoolsResponseSchema,
  ListQuotasResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { type AdminCommandParts, runAdmin } from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { isRedrawn, readEvery, roomBeside, watch } from "../admin/live-command.js";
import { readCount } from "../input/number-flags.js";
import type { CommandContext } from "../terminal/context.js";
import { eachPage } from "../terminal/pages.js";
import { drawQuotaPools, drawQuotas } from "./quotas-report.js";

interface QuotasFlags {
  readonly domain?: string;
  readonly list?: true;
  readonly count?: string;
  readonly every: string;
  readonly once?: true;
}

/** Maximum number of limits shown. */
const poolCountMax = 100;

const defaultPoolCount = 10;

/** Adds `headgate quotas`: the requests of each Envoy for quotas, and its assignments. */
export function addQuotas(program: Command, context: CommandContext): void {
  const command = program
    .command("quotas")
    .description("watch quotas: the requests of each Envoy, and its assignment")
    .argument("[QUOTA]", "only this quota")
    .option("--domain <DOMAIN>", "only quotas of this domain")
    .option("--list", "list the quotas of the policy, without limits and Envoys")
    .option("-n, --count <COUNT>", `the number of limits, at most ${poolCountMax}`)
    .option("--every <DURATION>", "the refresh interval", "1s")
    .option("--once", "print one table and exit, as without a terminal");
  addAdminCommandFlags(command, {
    examples: `
  headgate quotas
  headgate quotas search --once
  headgate quotas --list
  headgate quotas search -o json | jq '.pools[0].shares[] | {node, heldRate}'`,
    notes: `
On a terminal it refreshes until q or Ctrl-C. It shows what the answering
replica knows: the Envoys connected to it, and its own lease.`,
  }).action((quota: string | undefined, flags: QuotasFlags) =>
    runAdmin(command, context, (call) => quotas(quota ?? "", flags, call)),
  );
}

async function quotas(quota: string, flags: QuotasFlags, call: AdminCommandParts): Promise<void> {
  const { printer, client } = call;
  const { domain = "" } = flags;
  const count =
    flags.count === undefined ? defaultPoolCount : readCount("--count", flags.count, poolCountMax);
  const everyMs = readEvery(flags.every);
  if (flags.list === true) {
    const all = create(ListQuotasResponseSchema);
    await eachPage(
      (page) => client.quotas.listQuotas({ domain, ...page }),
      (page) => {
        all.quotas.push(...page.quotas);
        all.policyVersion = page.policyVersion;
      },
    );
    return printer.print(ListQuotasResponseSchema, all, drawQuotas);
  }
  const look = () => client.quotas.listQuotaPools({ domain, quota, count });
  if (!isRedrawn(call, flags)) {
    return printer.print(ListQuotaPoolsResponseSchema, await look(), drawQuotaPools);
  }
  const draw = async (): Promise<readonly string[]> => {
    const drawing = printer.drawing();
    const lines = drawQuotaPools(await look(), drawing).slice(0, roomBeside(2, call));
    return [...lines, "", drawing.style.dim("q quits")];
  };
  await watch({ everyMs, draw }, call);
}
