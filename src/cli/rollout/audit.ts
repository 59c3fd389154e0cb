import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { isJsonObject, type JsonObject, type JsonValue } from "../../core/base/json.js";
import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import {
  type AuditEntry,
  type ListAuditResponse,
  ListAuditResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { systemClock } from "../../host/clock.js";
import { type AdminCommandParts, runAdmin } from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { momentSince } from "../input/moment.js";
import { readCount } from "../input/number-flags.js";
import type { CommandContext } from "../terminal/context.js";
import type { Drawing } from "../terminal/drawing.js";
import { eachPage } from "../terminal/pages.js";
import { countText, safeText, timeText } from "../terminal/quantity.js";
import { drawTable } from "../terminal/text-table.js";
import { textWidth, truncateText, wrapText } from "../terminal/text-width.js";

interface AuditFlags {
  readonly since?: string;
  readonly by?: string;
  readonly action?: string;
  readonly count: string;
}

/** Maximum number of requested entries. */
const auditCountMax = 100_000;

/** Adds `headgate audit`: changes by operators, with author and reason. */
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

/** Draws the log: who changed what and why; two lines for each entry in a narrow window. */
export function drawAudit({ entries }: ListAuditResponse, drawing: Drawing): readonly string[] {
  if (entries.length === 0) return ["Nothing was changed."];
  const { style, columnsMax } = drawing;
  const rows = entries.map((entry) => [
    timeText(entry.time),
    safeText(entry.author),
    safeText(entry.action),
    safeText(subjectText(entry)),
    safeText(changeText(entry)),
    safeText(entry.reason),
  ]);
  const titles = ["time", "who", "what", "of", "change", "why"];
  const plain = drawTable(
    titles.map((title) => ({ title })),
    rows,
  );
  if (plain.some((line) => textWidth(line) > columnsMax)) {
    return rows.flatMap((row) => drawNarrow(row, drawing));
  }
  const paints = [style.dim, undefined, style.bold];
  return drawTable(
    titles.map((title, i) => {
      const paint = paints[i];
      return paint === undefined ? { title } : { title, paint };
    }),
    rows,
  );
}

function drawNarrow(
  [time = "", who = "", what = "", of = "", change = "", why = ""]: readonly string[],
  { style, columnsMax }: Drawing,
): readonly string[] {
  const head = `${time}  ${truncateText(who, whoColumnsMax)}  `;
  const rest = truncateText(of, columnsMax - textWidth(head) - what.length - 2);
  const reported = [change, why].filter((text) => text !== "").join(": ");
  return [
    `${style.dim(head)}${style.bold(what)}  ${rest}`,
    ...wrapText(reported, columnsMax - 2).map((line) => `  ${line}`),
  ];
}

/** Maximum columns of the author in a narrow window. */
const whoColumnsMax = 24;

/** State before and after, as recorded; undefined: none, or unreadable. */
interface Sides {
  readonly before: JsonObject | undefined;
  readonly after: JsonObject | undefined;
}

function sidesOf({ before, after }: AuditEntry): Sides {
  return { before: readSide(before), after: readSide(after) };
}

/** Returns undefined for an empty record, and for a truncated one, which is not valid JSON. */
function readSide(text: string): JsonObject | undefined {
  try {
    const value: JsonValue = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the subject of an entry; for an override, its keys instead of its id. */
function subjectText(entry: AuditEntry): string {
  const { before, after } = sidesOf(entry);
  const { domain, entries, isPrefix, limitName } = after ?? before ?? {};
  const read = readEntries(entries);
  if (typeof domain !== "string" || read === undefined) return entry.subject;
  const below = isPrefix === true ? ", and all below" : "";
  const limit = typeof limitName === "string" ? ` (${limitName})` : "";
  return `${domain} ${formatEntries(read)}${below}${limit}`;
}

function readEntries(value: JsonValue | undefined): readonly DescriptorEntry[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.flatMap((pair: JsonValue) => {
    const [key, text] = Array.isArray(pair) ? pair : [];
    return typeof key === "string" && typeof text === "string" ? [{ key, value: text }] : [];
  });
}

/** Returns a change as `times 2 → frozen`; empty for records of a later version. */
function changeText(entry: AuditEntry): string {
  const { before, after } = sidesOf(entry);
  if (before === undefined && after === undefined) return "";
  const [from, to] = [sideText(before), sideText(after)];
  return from === "" && to === "" ? "" : `${from || "none"} → ${to || "none"}`;
}

function sideText(side: JsonObject | undefined): string {
  if (side === undefined) return "";
  const { effect, version, shadow, openBelowRatio, closeAboveRatio } = side;
  if (isJsonObject(effect)) return effectText(effect);
  if (typeof version === "string") return shadow === true ? `${version} beside` : version;
  if (typeof openBelowRatio !== "number" || typeof closeAboveRatio !== "number") return "";
  return `${openBelowRatio} to ${closeAboveRatio}`;
}

function effectText({ kind, by, hits, burst }: JsonObject): string {
  if (kind === "frozen") return "frozen";
  if (typeof by === "number") return `times ${by}`;
  if (typeof hits !== "number") return "";
  const other = typeof burst !== "number" || burst === hits ? "" : `, burst ${countText(burst)}`;
  return `${countText(hits)} ${hits === 1 ? "hit" : "hits"}${other}`;
}
