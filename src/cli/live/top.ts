import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import {
  type KeySelector,
  type NearLimitKeysResponse,
  NearLimitKeysResponseSchema,
  type TopKeysResponse,
  TopKeysResponseSchema,
  TopOrder,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  type AdminCommandParts,
  addFleetViewFlags,
  type FleetViewFlags,
  noteSilent,
  runAdmin,
} from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { isRedrawn, readEvery, roomBeside, watch } from "../admin/live-command.js";
import { readCount } from "../input/number-flags.js";
import { drawBar } from "../terminal/bar.js";
import { usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import type { Drawing } from "../terminal/drawing.js";
import {
  countText,
  entriesText,
  isOfFleet,
  percentText,
  replicaText,
  safeText,
  timeText,
} from "../terminal/quantity.js";
import { drawTable } from "../terminal/text-table.js";
import { truncateText } from "../terminal/text-width.js";
import { keyRefusalRows, refusalLooks } from "./service-refusals.js";

interface TopFlags extends FleetViewFlags {
  readonly by: TopBy;
  readonly rule?: string;
  readonly count?: string;
  readonly every: string;
  readonly once?: true;
}

/** Maximum number of keys in one request. */
const topCountMax = 100;

const defaultCount = 10;

/** Lines of a picture other than keys: title, empty line, column titles, empty line, footer. */
const otherLines = 5;

/** Adds `headgate top`: keys with the most requests or denials, or closest to their limits. */
export function addTop(program: Command, context: CommandContext): void {
  const command = program
    .command("top")
    .description("watch keys with most requests, most denials, or near their limit")
    .argument("[DOMAIN]", "only decisions of this domain")
    .addOption(
      new Option("--by <order>", "the order of keys")
        .choices(["hits", "denials", "near"])
        .default("hits"),
    )
    .option("--rule <LABEL>", "only the rule with this label")
    .option(
      "-n, --count <COUNT>",
      `the number of keys, at most ${topCountMax}; default: as many as fit`,
    )
    .option("--every <DURATION>", "the refresh interval", "1s")
    .option("--once", "print one table and exit, as without a terminal");
  addAdminCommandFlags(addFleetViewFlags(command), {
    examples: `
  headgate top
  headgate top shop --by denials
  headgate top --by near --once
  headgate top shop --rule plan.user -o json`,
    notes: `
On a terminal it refreshes until q or Ctrl-C; h, d and n show hits, denials and
keys near their limit. Without DOMAIN it also lists services whose requests
admission or circuit breakers refuse: the rate per second, and at first the
total so far. -o json contains keys only. Counts come from a sample of the
calls of each replica; \`100 -4\` means that it may be 4 fewer.`,
  }).action((domain: string | undefined, flags: TopFlags) =>
    runAdmin(command, context, (call) => top(domain ?? "", flags, call)),
  );
}

async function top(domain: string, flags: TopFlags, call: AdminCommandParts): Promise<void> {
  const { printer } = call;
  if (flags.rule !== undefined && domain === "") {
    throw usageFailure("--rule needs a domain before it: headgate top shop --rule plan.user");
  }
  const asked =
    flags.count === undefined ? undefined : readCount("--count", flags.count, topCountMax);
  const everyMs = readEvery(flags.every);
  let { by } = flags;
  const { thisReplica = false } = flags;
  const look = (count: number): Promise<TopView> => {
    return ask(call, { by, domain, ruleLabel: flags.rule ?? "", count, thisReplica });
  };
  const lookAtRefusals = refusalLooks(call, { thisReplica });
  const refusals = async (): Promise<readonly string[]> => {
    if (domain !== "" || printer.format !== "table") return [];
    return keyRefusalRows(call, lookAtRefusals);
  };
  if (!isRedrawn(call, flags)) {
    const [view, below] = await Promise.all([look(asked ?? defaultCount), refusals()]);
    printOnce(view, below, call);
    return noteSilent(call, view.answer.silentReplicas);
  }
  const draw = async (): Promise<readonly string[]> => {
    const below = await refusals();
    const room = roomBeside(otherLines + below.length, call);
    const view = await look(Math.min(asked ?? room, room, topCountMax));
    const foot = printer.drawing().style.dim("q quit   h hits   d denials   n near the limit");
    return [...drawTop(view, printer.drawing()), ...below, "", foot];
  };
  const onKey = (key: string): void => {
    by = keys.get(key) ?? by;
  };
  await watch({ everyMs, draw, onKey }, call);
}

const keys: ReadonlyMap<string, TopBy> = new Map([
  ["h", "hits"],
  ["d", "denials"],
  ["n", "near"],
]);

async function ask(
  { client }: AdminCommandParts,
  asked: {
    readonly by: TopBy;
    readonly domain: string;
    readonly ruleLabel: string;
    readonly count: number;
    readonly thisReplica: boolean;
  },
): Promise<TopView> {
  const { by, ...request } = asked;
  if (by === "near") return { by, answer: await client.limits.nearLimitKeys(request) };
  const order = by === "hits" ? TopOrder.HITS : TopOrder.DENIALS;
  return { by, answer: await client.limits.topKeys({ ...request, order }) };
}

function printOnce(view: TopView, below: readonly string[], { printer }: AdminCommandParts): void {
  const { by } = view;
  if (by === "near") {
    printer.print(NearLimitKeysResponseSchema, view.answer, (answer, drawing) => [
      ...drawTop({ by, answer }, drawing),
      ...below,
    ]);
  } else {
    printer.print(TopKeysResponseSchema, view.answer, (answer, drawing) => [
      ...drawTop({ by, answer }, drawing),
      ...below,
    ]);
  }
}

/** The order of keys. */
type TopBy = "hits" | "denials" | "near";

/** Contents of `headgate top`. */
type TopView =
  | { readonly by: "hits" | "denials"; readonly answer: TopKeysResponse }
  | { readonly by: "near"; readonly answer: NearLimitKeysResponse };

const titles: Readonly<Record<TopBy, string>> = {
  hits: "Keys with most requests",
  denials: "Keys with most denials",
  near: "Keys nearest to their limit",
};

/** Draws the picture: a title line and a table. */
function drawTop(view: TopView, drawing: Drawing): readonly string[] {
  const { style, columnsMax } = drawing;
  const since = view.by === "near" ? "" : sinceText(view.answer.since);
  const title = style.bold(truncateText(`${titles[view.by]}${since}`, columnsMax));
  const barColumns = Math.max(4, Math.min(16, Math.floor(columnsMax / 8)));
  const isFleet = isOfFleet(view.answer.keys);
  const rows =
    view.by === "near" ? nearRows(view.answer, barColumns) : countRows(view.answer, barColumns);
  if (rows.length === 0) return [title, "", "No keys yet."];
  const color = view.by === "hits" ? style.good : style.bad;
  const columns = [
    { title: view.by === "near" ? "used" : "calls", align: "right" },
    { title: "", paint: color },
    ...(isFleet ? [{ title: "replica" }] : []),
    { title: "domain", isFlexible: true },
    { title: "rule", isFlexible: true },
    // Domains and rules are recognizable by their first characters; keys are not.
    { title: "key", isFlexible: true, columnsMin: Math.floor(columnsMax * 0.4) },
  ] as const;
  return [title, "", ...drawTable(columns, rows, columnsMax)];
}

function sinceText(since: Timestamp | undefined): string {
  return since === undefined ? "" : ` since ${timeText(since)}`;
}

function countRows({ keys }: TopKeysResponse, barColumns: number): readonly (readonly string[])[] {
  const isFleet = isOfFleet(keys);
  const most = Math.max(1, ...keys.map(({ count }) => Number(count)));
  return keys.map(({ key, ruleLabel, count, errorMax, replica }) => [
    countText(count) + (errorMax === 0n ? "" : ` -${countText(errorMax)}`),
    drawBar(Number(count) / most, barColumns),
    ...(isFleet ? [replicaText(replica)] : []),
    ...keyCells(key, ruleLabel),
  ]);
}

function nearRows(
  { keys }: NearLimitKeysResponse,
  barColumns: number,
): readonly (readonly string[])[] {
  const isFleet = isOfFleet(keys);
  return keys.map(({ key, ruleLabel, usedRatio, isOver, replica }) => [
    isOver ? "over" : percentText(usedRatio),
    drawBar(usedRatio, barColumns),
    ...(isFleet ? [replicaText(replica)] : []),
    ...keyCells(key, ruleLabel),
  ]);
}

function keyCells(key: KeySelector | undefined, ruleLabel: string): readonly string[] {
  const { domain = "", entries = [], limitName = "" } = key ?? {};
  const limit = limitName === "" ? "" : ` (${safeText(limitName)})`;
  return [safeText(domain), safeText(ruleLabel), entriesText(entries) + limit];
}
