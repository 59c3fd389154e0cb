import type { AdmissionRow } from "./admission.js";
import type { InProcessRow } from "./in-process.js";
import type { MemoryRow } from "./memory-row.js";
import type { OverrideRow } from "./override-rows.js";
import type { RedisScriptRow } from "./redis-script.js";
import type { GatewayRow, Row, ServerRows } from "./row.js";
import type { Comparison } from "./targets.js";
import type { WatchedRow } from "./watched.js";

interface Column {
  readonly title: string;
  readonly cell: (row: Row, floor: Row) => string;
}

const defaultColumns: readonly Column[] = [
  { title: "calls/s", cell: (row) => Math.round(row.callsPerSecond).toLocaleString("en-US") },
  { title: "CPU us/call", cell: (row) => row.cpuUsPerCall.toFixed(1) },
  { title: "x floor", cell: (row, floor) => (row.cpuUsPerCall / floor.cpuUsPerCall).toFixed(2) },
  { title: "Redis us/call", cell: (row) => row.redisCpuUsPerCall?.toFixed(1) ?? "" },
  { title: "p50 ms", cell: (row) => row.p50Ms.toFixed(1) },
  { title: "p99 ms", cell: (row) => row.p99Ms.toFixed(1) },
  { title: "failed", cell: (row) => String(row.failedCount) },
  { title: "denied", cell: (row) => String(row.deniedCount) },
];

const exchangeColumns = defaultColumns.filter(({ title }) => !/Redis|denied/.test(title));

/** Where servers are not busy, what a call waits is what differs. */
const steadyColumns: readonly Column[] = [
  { title: "calls/s", cell: (row) => Math.round(row.callsPerSecond).toLocaleString("en-US") },
  { title: "CPU us/call", cell: (row) => row.cpuUsPerCall.toFixed(1) },
  { title: "p50 ms", cell: (row) => row.p50Ms.toFixed(2) },
  { title: "p99 ms", cell: (row) => row.p99Ms.toFixed(2) },
  { title: "failed", cell: (row) => String(row.failedCount) },
];

/** The rows of servers as tables for people; `x floor` compares CPU with a table's first row. */
export function formatServers({ calls, exchanges, steady }: ServerRows): string {
  const tables = [
    formatRows("4 connections x 50 calls in flight", calls, defaultColumns),
    formatRows("4 connections x 50 exchanges in flight", exchanges, exchangeColumns),
    formatRows("at a rate, each call at a time of its own", steady?.rows ?? [], steadyColumns),
  ];
  return tables.filter((table) => table !== "").join("\n\n");
}

/** The rows through Envoy, with everybody's CPU: they share the machine. */
export function formatGateways(rows: readonly GatewayRow[]): string {
  if (rows.length === 0) return "";
  const header = ["64 requests in flight in one Envoy", "requests/s", "Envoy us", "Headgate us"];
  const cells = rows.map((row) => [
    row.name,
    Math.round(row.requestsPerSecond).toLocaleString("en-US"),
    ...[row.envoyUs, row.headgateUs, row.upstreamUs, row.loadUs].map((us) => us.toFixed(1)),
    row.p50Ms.toFixed(1),
    row.p99Ms.toFixed(1),
    String(row.failedCount + row.deniedCount),
  ]);
  const more = ["upstream us", "load us", "p50 ms", "p99 ms", "not 200"];
  return layOut([[...header, ...more], ...cells]);
}

/** What was aimed at, and what this run says. */
export function formatComparisons(comparisons: readonly Comparison[]): string {
  if (comparisons.length === 0) return "";
  const cells = comparisons.map(({ what, target, measured }) => [what, target, measured]);
  return layOut([["compared in this run", "target", "measured"], ...cells]);
}

function formatRows(title: string, rows: readonly Row[], columns: readonly Column[]): string {
  const [floor] = rows;
  if (floor === undefined) return "";
  return layOut([
    [title, ...columns.map((column) => column.title)],
    ...rows.map((row) => [row.name, ...columns.map((column) => column.cell(row, floor))]),
  ]);
}

/** What decisions cost without a transport; parts below their whole. */
export function formatInProcess(rows: readonly InProcessRow[]): string {
  if (rows.length === 0) return "";
  const cells = rows.flatMap(({ name, cpuUsPerDecision, redisCpuUsPerDecision, parts = {} }) => [
    [name, cpuUsPerDecision.toFixed(2), redisCpuUsPerDecision?.toFixed(2) ?? ""],
    ...Object.entries(parts).map(([part, us]) => [`  of which ${part}`, us.toFixed(2), ""]),
  ]);
  const header = ["bytes to bytes in process", "CPU us/decision", "Redis us/decision"];
  return layOut([header, ...cells]);
}

/** What it costs a decision that operators look on, both sides in turn in one process. */
export function formatWatched(rows: readonly WatchedRow[]): string {
  if (rows.length === 0) return "";
  const cells = rows.map(({ name, withoutUs, withUs }) => [
    name,
    withoutUs.toFixed(2),
    withUs.toFixed(2),
    `${((withUs / withoutUs - 1) * 100).toFixed(1)} %`,
  ]);
  return layOut([["seen keys, 100,000 overrides", "without us", "with us", "more"], ...cells]);
}

/** What as many overrides as there may be cost a replica. */
export function formatOverrides({ count, megabytes, changeMs }: OverrideRow): string {
  return layOut([
    ["overrides in a replica", "MB", "ms a change"],
    [count.toLocaleString("en-US"), megabytes.toFixed(1), changeMs.toFixed(1)],
  ]);
}

/** What admission costs a request from headers to its end, without codec and transport. */
export function formatAdmission(rows: readonly AdmissionRow[]): string {
  if (rows.length === 0) return "";
  const cells = rows.map(({ name, cpuUsPerRequest }) => [name, cpuUsPerRequest.toFixed(2)]);
  return layOut([["admission in process", "CPU us/request"], ...cells]);
}

/** What a process holds as it goes on deciding. */
export function formatMemory({ name, residentMegabytes, decisionsPerStep }: MemoryRow): string {
  const cells = residentMegabytes.map((megabytes, step) => {
    const decided = ((step + 1) * decisionsPerStep).toLocaleString("en-US");
    return [`${name}, after ${decided} decisions more`, String(megabytes)];
  });
  return layOut([["resident memory", "MB"], ...cells]);
}

/** What the script costs the Redis process. */
export function formatRedisScript(rows: readonly RedisScriptRow[]): string {
  if (rows.length === 0) return "";
  const cells = rows.map(({ name, redisCpuUsPerDecision, redisCpuUsPerRun }) => [
    name,
    redisCpuUsPerDecision.toFixed(2),
    redisCpuUsPerRun.toFixed(1),
  ]);
  return layOut([["script of a batch", "Redis CPU us/decision", "us/run"], ...cells]);
}

/** The first column to the left, numbers to the right. */
export function layOut(lines: readonly (readonly string[])[]): string {
  const [header = []] = lines;
  const widths = header.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
        .join("  "),
    )
    .join("\n");
}
