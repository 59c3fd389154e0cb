import type { InProcessRow } from "./in-process.js";
import type { MemoryRow } from "./memory-row.js";
import type { RedisScriptRow } from "./redis-script.js";

/** One measured row. Times are of one call as the client sees it; CPU is the server process's. */
export interface Row {
  readonly name: string;
  readonly callsPerSecond: number;
  readonly cpuUsPerCall: number;
  /** CPU of the Redis process; absent without one. */
  readonly redisCpuUsPerCall?: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failedCount: number;
  readonly deniedCount: number;
}

const columns: readonly {
  readonly title: string;
  readonly cell: (row: Row, floor: Row) => string;
}[] = [
  { title: "4 connections x 50 calls in flight", cell: (row) => row.name },
  { title: "calls/s", cell: (row) => Math.round(row.callsPerSecond).toLocaleString("en-US") },
  { title: "CPU us/call", cell: (row) => row.cpuUsPerCall.toFixed(1) },
  { title: "x floor", cell: (row, floor) => (row.cpuUsPerCall / floor.cpuUsPerCall).toFixed(2) },
  { title: "Redis us/call", cell: (row) => row.redisCpuUsPerCall?.toFixed(1) ?? "" },
  { title: "p50 ms", cell: (row) => row.p50Ms.toFixed(1) },
  { title: "p99 ms", cell: (row) => row.p99Ms.toFixed(1) },
  { title: "failed", cell: (row) => String(row.failedCount) },
  { title: "denied", cell: (row) => String(row.deniedCount) },
];

/** The rows as a table for people; `x floor` compares CPU with the first row. */
export function formatTable(rows: readonly Row[]): string {
  const [floor] = rows;
  if (floor === undefined) return "";
  return layOut([
    columns.map((column) => column.title),
    ...rows.map((row) => columns.map((column) => column.cell(row, floor))),
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
function layOut(lines: readonly (readonly string[])[]): string {
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
