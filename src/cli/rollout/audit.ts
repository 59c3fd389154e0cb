import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { systemClock } from "../../app/base/clock.js";
import { ListAuditResponseSchema } from "../../gen/headgate/admin/v1/admin_pb.js";
import { type AdminCommandParts, addAdminCommandFlags, runAdmin } from "../admin/admin-command.js";
import { momentSince } from "../input/moment.js";
import { readCount } from "../input/number-flags.js";
import type { CommandContext } from "../terminal/context.js";
import { eachPage } from "../terminal/pages.js";
import { drawAudit } from "./audit-report.js";

interface AuditFlags {
  readonly since?: string;
  readonly by?: string;
  readonly action?: string;
  readonly count: string;
}

/** The most entries that are asked for. */
const auditCountMax = 100_000;

/** Adds `headgate audit`: what was changed, by whom and why. */
export function addAudit(program: Command, context: CommandContext): void {
  const command = program
    .command("audit")
    .description("list changes of operators: what, who and why, newest first")
    .option("--since <WHEN>", "only since then: 2h, or 2026-11-27T12:00:00Z")
    .option("--by <AUTHOR>", "only changes by this operator")
    .option("--action <METHOD>", "only this action, such as SetOverride")
    .option("-n, --count <COUNT>", "at most this many", "50");
  addAdminCommandFlags(command, {
    examples: `
  headgate audit
  headgate audit --since 2h
  headgate audit --by ann --action SetOverride
  headgate audit -o json | jq '.entries[] | {author, before, after}'`,
    notes: "\nJSON and YAML also contain the state before and after, as JSON.",
  }).action((flags: AuditFlags) => runAdmin(command, context, (call) => audit(flags, call)));
}

async function audit(flags: AuditFlags, { client, printer }: AdminCommandParts): Promise<void> {
  const most = readCount("--count", flags.count, auditCountMax);
  const since =
    flags.since === undefined
      ? {}
      : { since: momentSince({ flag: "--since", text: flags.since, clock: systemClock }) };
  const filter = { ...since, author: flags.by ?? "", action: flags.action ?? "" };
  const all = create(ListAuditResponseSchema);
  await eachPage(
    (page) =>
      client.fleet.listAudit({ ...filter, ...page, pageSize: Math.min(page.pageSize, most) }),
    ({ entries }) => {
      all.entries.push(...entries.slice(0, most - all.entries.length));
      return all.entries.length < most ? undefined : "enough";
    },
  );
  printer.print(ListAuditResponseSchema, all, drawAudit);
}
