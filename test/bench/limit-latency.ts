import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RedisServer } from "../support/redis-server.js";
import type { ProofRow } from "./proof.js";
import type { Row } from "./row.js";
import {
  defaultLoad,
  measure,
  rateLimitCalls,
  type Scenario,
  type ScenarioLoad,
} from "./scenario.js";
import { benchPolicy } from "./server-rows.js";
import { startEmptyServer, startHeadgate } from "./servers.js";

/** Turns of each row. The one that other work has disturbed least counts. */
const turnCount = 3;

/** All rows get the same calls at the same times. */
const seed = 1;

const rates = [
  { name: "half of saturation", part: 0.5, most: 1 },
  { name: "90 % of saturation", part: 0.9, most: 3 },
] as const;

/** By how much a rate is lowered until a steady load is kept up. */
const slowerRatio = 0.85;

/** A steady load is kept up if so many of its calls are answered in time, and these so soon. */
const keptRatioMin = 0.98;
const keptP99MsMax = 100;

/** Collections of garbage in the time of a measurement. */
interface Collections {
  readonly longestMs: number;
  /** Of the time, in percent. */
  readonly share: number;
  readonly count: number;
}

/** The p99 of calls near what a server can take, and what the garbage collector takes of it. */
export async function latencyRows(measureMs: number): Promise<readonly ProofRow[]> {
  const directory = await mkdtemp(join(tmpdir(), "headgate-latency-"));
  const redis = await RedisServer.start({ engine: "redis" });
  try {
    const policyFile = join(directory, "policy.yaml");
    const gcFile = join(directory, "gc.json");
    await writeFile(policyFile, benchPolicy);
    await writeFile(join(directory, "gc.cjs"), gcHook(gcFile));
    const nodeOptions = ["--require", join(directory, "gc.cjs")];
    const place = { policyFile, nodeOptions, gcFile, measureMs };
    return [
      ...(await latencyOf({ ...place, label: "embedded store" })),
      ...(await latencyOf({ ...place, label: "with Redis", redis })),
    ];
  } finally {
    await redis.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

interface LatencyOrder {
  readonly label: string;
  readonly policyFile: string;
  readonly nodeOptions: readonly string[];
  readonly gcFile: string;
  readonly measureMs: number;
  readonly redis?: RedisServer;
}

async function latencyOf(order: LatencyOrder): Promise<readonly ProofRow[]> {
  const { label, measureMs, redis, gcFile } = order;
  const scenario = {
    name: label,
    calls: rateLimitCalls(20_000),
    start: () =>
      startHeadgate({ ...order, ...(redis === undefined ? {} : { redisPort: redis.port }) }),
  };
  const saturation = await saturationOf(scenario, measureMs);
  const rows: ProofRow[] = [];
  for (const { name, part, most } of rates) {
    const rate = part * saturation;
    let best: { readonly row: Row; readonly gc: Collections } | undefined;
    for (let turn = 0; turn < turnCount; turn += 1) {
      const row = await measure({ ...scenario, load: openLoad(rate) }, measureMs);
      const gc = await readCollections(gcFile, measureMs);
      if (best === undefined || row.p99Ms < best.row.p99Ms) best = { row, gc };
    }
    if (best === undefined) throw new Error("a turn at least");
    const { row, gc } = best;
    const pauses = `${gc.count} collections, longest ${gc.longestMs.toFixed(1)} ms`;
    const shared = { group: "limits" } as const;
    const target = { most };
    const note = latencyNote(row, await floorOf(scenario, rate, measureMs));
    rows.push(
      { ...shared, name: `p99, ${label}, ${name}`, value: row.p99Ms, unit: "ms", target, note },
      { ...shared, name: `gc, ${label}, ${name}`, value: gc.share, unit: "%", note: pauses },
    );
  }
  return rows;
}

/**
 * The rate that a steady load is kept up at. As many calls as can be in flight come in larger
 * batches, which cost less each: their rate is above it.
 */
async function saturationOf(scenario: Omit<Scenario, "load">, measureMs: number): Promise<number> {
  const { callsPerSecond } = await measure({ ...scenario, load: defaultLoad }, measureMs);
  for (let rate = callsPerSecond; ; rate *= slowerRatio) {
    const row = await measure({ ...scenario, load: openLoad(rate) }, measureMs / 2);
    const isKept = row.callsPerSecond >= keptRatioMin * rate && row.p99Ms <= keptP99MsMax;
    if (isKept || rate < callsPerSecond / 4) return rate;
  }
}

function openLoad(callsPerSecond: number): ScenarioLoad {
  const pace = { kind: "open", callsPerSecond, seed } as const;
  return { connectionCount: defaultLoad.connectionCount, pace };
}

/** The p99 of a server that decides nothing: the load, the machine and the transport. */
async function floorOf(
  { name, calls }: Omit<Scenario, "load">,
  rate: number,
  measureMs: number,
): Promise<number> {
  const start = () => startEmptyServer({ transport: "native", nodeOptions: [] });
  const { p99Ms } = await measure({ name, calls, start, load: openLoad(rate) }, measureMs);
  return p99Ms;
}

function latencyNote(row: Row, floorMs: number): string {
  const { callsPerSecond, cpuUsPerCall, loadCpuUsPerCall } = row;
  const rate = `${Math.round(callsPerSecond).toLocaleString("en")} a second`;
  const core = (us: number): string => `${((us * callsPerSecond) / 10_000).toFixed(0)} %`;
  const used = `server ${core(cpuUsPerCall)}, load ${core(loadCpuUsPerCall)} of a core`;
  return `${rate}; ${used}; an empty server ${floorMs.toFixed(1)} ms`;
}

/** Loaded into the service: it writes down each collection, and when the load has ended. */
function gcHook(file: string): string {
  return `
const { PerformanceObserver, performance } = require("node:perf_hooks");
const pauses = [];
new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) pauses.push([startTime, duration]);
}).observe({ entryTypes: ["gc"] });
let endMs;
process.on("SIGTERM", () => {
  endMs ??= performance.now();
});
process.on("exit", () => {
  require("node:fs").writeFileSync(${JSON.stringify(file)}, JSON.stringify({ endMs, pauses }));
});
`;
}

async function readCollections(file: string, measureMs: number): Promise<Collections> {
  const text = await readFile(file, "utf8");
  const told = JSON.parse(text) as { endMs: number; pauses: readonly [number, number][] };
  const durations = told.pauses
    .filter(([startMs]) => startMs >= told.endMs - measureMs && startMs <= told.endMs)
    .map(([, duration]) => duration);
  const sumMs = durations.reduce((sum, duration) => sum + duration, 0);
  return {
    longestMs: Math.max(0, ...durations),
    share: (100 * sumMs) / measureMs,
    count: durations.length,
  };
}
