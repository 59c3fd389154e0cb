import { writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ChildProgram } from "../support/child-program.js";
import { freePort } from "../support/free-port.js";
import { sumOfSeries } from "../support/headgate-process.js";
import { HttpClient } from "../support/http-client.js";
import { Stage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";
import type { ControlFleetLine, ControlFleetOrder } from "./control-fleet.js";
import { clusterName } from "./control-messages.js";
import { processCpuUs } from "./process-cpu.js";
import { layOut } from "./report.js";
import { startHeadgate } from "./servers.js";

/** Time between two measurements of the event loop's delay, which counts into each of them. */
const delayStepMs = 10;

/** The fleet that the control port's cost is promised for. */
export const promisedFleet = { nodeCount: 1_000, serviceCount: 20 } as const;

/** Until everything is compiled and no baseline is new. */
const warmUpMs = 15_000;

/** Layers that may still be on their way when counts are read, of those that were sent. */
const unacknowledgedRatioMax = 0.02;

/** How a run is made. */
export interface ControlPortOrder {
  readonly nodeCount: number;
  readonly serviceCount: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Options of Node for the service: those that make a profile. */
  readonly nodeOptions: readonly string[];
}

/** What a control port needed for a fleet. */
export interface ControlPortCost {
  readonly nodeCount: number;
  readonly serviceCount: number;
  /** Headgate's CPU time next to the time that it was measured for. */
  readonly coreRatio: number;
  readonly cpuUsPerNodeAndService: number;
  readonly flushesPerSecond: number;
  readonly reportsPerSecond: number;
  readonly flushBytes: number;
  readonly reportBytes: number;
  readonly layersPerSecond: number;
  readonly layerBytes: number;
  readonly acknowledgedRatio: number;
  readonly delayP50Ms: number;
  readonly delayP99Ms: number;
  /** The longest, of all that was measured; on a busy machine, what others took counts too. */
  readonly delayMaxMs: number;
  readonly residentBytes: number;
  /** More than before the first Envoy came. */
  readonly grownBytes: number;
  readonly fleetCoreRatio: number;
  readonly machineLoad: number;
  /** Messages that Headgate did not read, of those that were sent. */
  readonly unreadCount: number;
  readonly skippedCount: number;
  readonly endedCount: number;
  readonly ignoredCount: number;
}

/** The cost as a table. */
export interface ControlPortReport {
  readonly text: string;
  /** Whether one core is enough, and all layers are acknowledged and all messages read. */
  readonly isSound: boolean;
}

/** Measures the promised fleet, or another one. */
export async function tellControlPort(
  order: Pick<ControlPortOrder, "measureMs" | "nodeOptions"> &
    Partial<Pick<ControlPortOrder, "nodeCount" | "serviceCount">>,
): Promise<ControlPortReport> {
  const cost = await measureControlPort({ ...promisedFleet, warmUpMs, ...order });
  const { coreRatio, acknowledgedRatio, unreadCount, endedCount } = cost;
  const isSound =
    coreRatio <= 1 &&
    acknowledgedRatio >= 1 - unacknowledgedRatioMax &&
    unreadCount === 0 &&
    endedCount === 0;
  return { text: formatCost(cost), isSound };
}

/**
 * A Headgate as a user runs it, with the embedded store, and in another process a fleet of Envoys,
 * each on a connection of its own.
 */
export async function measureControlPort(order: ControlPortOrder): Promise<ControlPortCost> {
  const stage = new Stage();
  await stage.open();
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  try {
    const policyFile = join(stage.folder, "policy.yaml");
    await writeFile(policyFile, policyOf(order));
    const { nodeOptions } = order;
    const controlPort = await freePort();
    const headgate = await startHeadgate({ policyFile, nodeOptions, controlPort });
    stage.atEnd(() => headgate.stop());
    const look = async (): Promise<Look> => {
      const { body } = await http.send({ port: headgate.httpPort, path: "/metrics" });
      return { of: (name, labels = {}) => sumOfSeries(body, name, labels) };
    };
    const bareBytes = (await look()).of("process_resident_memory_bytes");
    const fleet = startFleet(stage, { ...order, port: controlPort });
    await waitFor(
      "all Envoys have layers",
      async () => (await look()).of("headgate_control_node_streams") >= 2 * order.nodeCount,
      { withinMs: 60_000, everyMs: 1_000 },
    );
    await passed(order.warmUpMs);
    const before = await readAll({ look, fleet, headgate });
    await passed(order.measureMs);
    const after = await readAll({ look, fleet, headgate });
    return costOf(order, { before, after, bareBytes });
  } finally {
    await stage.close();
  }
}

/** Headgate's own metrics at one moment. */
interface Look {
  readonly of: (name: string, labels?: Readonly<Record<string, string>>) => number;
}

/** All that is read at the beginning and at the end. */
interface Reading {
  readonly atMs: number;
  readonly headgateUs: number;
  readonly fleetUs: number;
  readonly line: ControlFleetLine;
  readonly metrics: Look;
}

interface RunningParts {
  readonly look: () => Promise<Look>;
  readonly fleet: ChildProgram;
  readonly headgate: { readonly pid: number };
}

/** CPU is read right after a line of the fleet, so that its counts are of the same moment. */
async function readAll({ look, fleet, headgate }: RunningParts): Promise<Reading> {
  const known = fleet.output.length;
  const line = await waitFor("the fleet says what it did", () => {
    if (!fleet.isRunning) throw new Error(`the fleet ended:\n${fleet.output.slice(-2_000)}`);
    return fleet.output.length > known && fleet.output.endsWith("\n") && lastLine(fleet.output);
  });
  const atMs = performance.now();
  const headgateUs = processCpuUs(headgate.pid);
  const fleetUs = processCpuUs(fleet.pid);
  return { atMs, headgateUs, fleetUs, line, metrics: await look() };
}

function lastLine(output: string): ControlFleetLine {
  return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as ControlFleetLine;
}

function startFleet(
  stage: Stage,
  { port, nodeCount, serviceCount }: ControlFleetOrder,
): ChildProgram {
  const script = fileURLToPath(new URL("./control-fleet-program.ts", import.meta.url));
  const order = JSON.stringify({ port, nodeCount, serviceCount });
  const args = ["--import", "tsx", script, order];
  return stage.spawn({ name: "fleet", file: process.execPath, args });
}

function passed(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

interface Readings {
  readonly before: Reading;
  readonly after: Reading;
  readonly bareBytes: number;
}

function costOf(order: ControlPortOrder, { before, after, bareBytes }: Readings): ControlPortCost {
  const { nodeCount, serviceCount } = order;
  const elapsedMs = after.atMs - before.atMs;
  const rose = (name: string, labels?: Readonly<Record<string, string>>): number =>
    after.metrics.of(name, labels) - before.metrics.of(name, labels);
  const perSecond = (count: number): number => (count / elapsedMs) * 1_000;
  const said = (of: (line: ControlFleetLine) => number): number => of(after.line) - of(before.line);
  const layers = "headgate_control_layers_total";
  const messages = "headgate_control_messages_total";
  const coreRatio = (after.headgateUs - before.headgateUs) / (elapsedMs * 1_000);
  const flushCount = said((line) => line.flushCount);
  const reportCount = said((line) => line.reportCount);
  const readCount =
    rose(messages, { service: "metrics" }) + rose(messages, { service: "load_stats" });
  // Between a line and the look after it some more are sent.
  const unreadCount = Math.max(0, Math.floor(0.9 * (flushCount + reportCount)) - readCount);
  const delayMs = (which: string): number => {
    const lateMs = after.metrics.of(`nodejs_eventloop_lag_${which}_seconds`) * 1_000;
    return Math.max(0, lateMs - delayStepMs);
  };
  const residentBytes = after.metrics.of("process_resident_memory_bytes");
  return {
    nodeCount,
    serviceCount,
    coreRatio,
    cpuUsPerNodeAndService: (coreRatio * 1e6) / (nodeCount * serviceCount),
    flushesPerSecond: perSecond(flushCount),
    reportsPerSecond: perSecond(reportCount),
    flushBytes: after.line.flushBytes,
    reportBytes: after.line.reportBytes,
    layersPerSecond: perSecond(rose(layers, { event: "sent" })),
    layerBytes:
      said((line) => line.layerBytes) /
      Math.max(
        1,
        said((line) => line.layerCount),
      ),
    acknowledgedRatio: rose(layers, { event: "acknowledged" }) / rose(layers, { event: "sent" }),
    delayP50Ms: delayMs("p50"),
    delayP99Ms: delayMs("p99"),
    delayMaxMs: delayMs("max"),
    residentBytes,
    grownBytes: residentBytes - bareBytes,
    fleetCoreRatio: (after.fleetUs - before.fleetUs) / (elapsedMs * 1_000),
    machineLoad: loadavg()[0] ?? 0,
    unreadCount,
    skippedCount: said((line) => line.skippedCount),
    endedCount: after.line.endedCount,
    ignoredCount: rose("headgate_control_ignored_numbers_total"),
  };
}

function formatCost(cost: ControlPortCost): string {
  const { nodeCount, serviceCount } = cost;
  const kilobytes = (bytes: number): string => `${(bytes / 1_000).toFixed(1)} KB`;
  const rows = [
    [`control port, ${nodeCount} Envoys with ${serviceCount} services`, ""],
    ["Headgate's CPU, of a core", percent(cost.coreRatio)],
    ["an Envoy and service, each second", `${cost.cpuUsPerNodeAndService.toFixed(1)} us`],
    ["flushes a second", perSecond(cost.flushesPerSecond, kilobytes(cost.flushBytes))],
    ["load reports a second", perSecond(cost.reportsPerSecond, kilobytes(cost.reportBytes))],
    ["layers a second", perSecond(cost.layersPerSecond, kilobytes(cost.layerBytes))],
    ["acknowledged of them", percent(cost.acknowledgedRatio)],
    ["event loop late by, p50", `${cost.delayP50Ms.toFixed(1)} ms`],
    ["event loop late by, p99", `${cost.delayP99Ms.toFixed(1)} ms`],
    ["event loop late by, at most", `${cost.delayMaxMs.toFixed(1)} ms`],
    ["resident memory", `${(cost.residentBytes / 1e6).toFixed(0)} MB`],
    ["of it for an Envoy", `${(cost.grownBytes / nodeCount / 1e6).toFixed(3)} MB`],
    ["of it for an Envoy and service", kilobytes(cost.grownBytes / nodeCount / serviceCount)],
    ["numbers ignored", String(cost.ignoredCount)],
    ["messages left out by the fleet", String(cost.skippedCount)],
    ["messages unread", String(cost.unreadCount)],
    ["streams that ended", String(cost.endedCount)],
    ["the fleet's own CPU, of a core", percent(cost.fleetCoreRatio)],
    ["load of the machine", cost.machineLoad.toFixed(1)],
  ];
  return layOut(rows);
}

function percent(ratio: number): string {
  return `${(100 * ratio).toFixed(1)} %`;
}

function perSecond(count: number, size: string): string {
  return `${count.toFixed(0)} of ${size}`;
}

/** All services learn from what Envoys push, and their limits go back. */
function policyOf({ nodeCount, serviceCount }: ControlPortOrder): string {
  const limit = 20 * nodeCount;
  const services = Array.from({ length: serviceCount }, (_, i) => {
    const law = `law: gradient, limits: {initial: ${limit}, max: ${2 * limit}}`;
    const reported = "sources: [envoyMetrics], feedback: [circuitBreakers]";
    return `    - {name: ${clusterName(i)}, concurrency: {${law}, ${reported}}}`;
  });
  return [
    "apiVersion: headgate.dev/v1alpha1",
    "kind: Policy",
    "metadata: {name: bench}",
    "spec:",
    `  proxies: {expected: ${nodeCount}}`,
    "  services:",
    ...services,
    "",
  ].join("\n");
}
