import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type {
  KeySelector,
  NearLimitKeysResponse,
  TopKeysResponse,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { drawBar } from "../terminal/bar.js";
import type { Drawing } from "../terminal/print.js";
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

/** What keys are put in order by. */
export type TopBy = "hits" | "denials" | "near";

/** What `headgate top` shows. */
export type TopView =
  | { readonly by: "hits" | "denials"; readonly answer: TopKeysResponse }
  | { readonly by: "near"; readonly answer: NearLimitKeysResponse };

const titles: Readonly<Record<TopBy, string>> = {
  hits: "Keys with most requests",
  denials: "Keys with most denials",
  near: "Keys nearest to their limit",
};

/** The picture for people: a line that says what it is, and a table. */
export function drawTop(view: TopView, drawing: Drawing): readonly string[] {
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
    // Domains and rules are known by their beginnings; keys are not.
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
