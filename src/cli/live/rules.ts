import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { many } from "../../core/base/many.js";
import {
  type ListRulesResponse,
  ListRulesResponseSchema,
  type Rule,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  addFleetViewFlags,
  type FleetViewFlags,
  noteSilent,
  runAdmin,
} from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import type { CommandContext } from "../terminal/context.js";
import type { Drawing } from "../terminal/drawing.js";
import { eachPage } from "../terminal/pages.js";
import { countText, isOfFleet, replicaText, safeText } from "../terminal/quantity.js";
import { drawTable } from "../terminal/text-table.js";
import { limitText } from "./keys-report.js";

/** Adds `headgate rules`: the limits of the active policy, and how often they were reached. */
export function addRules(program: Command, context: CommandContext): void {
  const command = program
    .command("rules")
    .description("list the rules of the active policy, and their counts")
    .argument("[DOMAIN]", "only decisions of this domain");
  addAdminCommandFlags(addFleetViewFlags(command), {
    examples: `
  headgate rules
  headgate rules shop
  headgate rules -o json | jq '.rules[] | select(.counts.overLimitHits > 0)'`,
    notes: "\nCounts are for each replica, since it started.",
  }).action((domain: string | undefined, { thisReplica = false }: FleetViewFlags) =>
    runAdmin(command, context, async (call) => {
      const { client, printer } = call;
      const all = create(ListRulesResponseSchema);
      await eachPage(
        (page) => client.limits.listRules({ domain: domain ?? "", thisReplica, ...page }),
        (page) => {
          all.rules.push(...page.rules);
          all.policyVersion = page.policyVersion;
          all.silentReplicas = Math.max(all.silentReplicas, page.silentReplicas);
        },
      );
      printer.print(ListRulesResponseSchema, all, drawRules);
      noteSilent(call, all.silentReplicas);
    }),
  );
}

/** Draws the list as text. */
function drawRules(
  { rules, policyVersion }: ListRulesResponse,
  { style, columnsMax }: Drawing,
): readonly string[] {
  if (rules.length === 0) return ["The active policy has no rules."];
  const isFleet = isOfFleet(rules);
  const number = { align: "right", paint: (cell: string) => cell } as const;
  const table = drawTable(
    [
      { title: "domain", isFlexible: true },
      { title: "rule", isFlexible: true, paint: style.bold },
      { title: "limits", isFlexible: true, isWrapped: true },
      ...(isFleet ? [{ title: "replica" }] : []),
      { ...number, title: "requests" },
      { ...number, title: "over", paint: (cell) => (cell.trim() === "0" ? cell : style.bad(cell)) },
      { ...number, title: "near" },
    ],
    rules.flatMap((rule, at) => {
      // Rows of one rule from several replicas are adjacent; its limits are printed once.
      const before = rules[at - 1];
      const isSame = before?.domain === rule.domain && before.label === rule.label;
      const [first = "none", ...others] = limitsOf(rule);
      const { hits = 0n, overLimitHits = 0n, nearLimitHits = 0n } = rule.counts ?? {};
      const counts = [hits, overLimitHits, nearLimitHits].map(countText);
      const numbers = isFleet ? [replicaText(rule.replica), ...counts] : counts;
      if (isSame) return [["", "", "", ...numbers]];
      const row = [safeText(rule.domain), safeText(rule.label), first, ...numbers];
      return [row, ...others.map((limit) => ["", "", limit])];
    }),
    columnsMax,
  );
  // There is a row for each replica, with the same rule and limits of the policy.
  const once = new Map(rules.map((rule) => [JSON.stringify([rule.domain, rule.label]), rule]));
  const limitCount = [...once.values()].reduce((sum, { limits }) => sum + limits.length, 0);
  const size = `${many(once.size, "rule")}, ${many(limitCount, "limit")}`;
  const version = style.dim(`${size} of policy ${safeText(policyVersion)}`);
  return [...table, version];
}

function limitsOf({ limits, isUnlimited }: Rule): readonly string[] {
  if (isUnlimited) return ["unlimited"];
  return limits.map((limit) => {
    return limit.name === "" ? limitText(limit) : `${safeText(limit.name)}: ${limitText(limit)}`;
  });
}
