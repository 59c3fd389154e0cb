import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Envoy } from "../support/envoy.js";
import { type EnvoyOptions, fromHeader } from "../support/envoy-config.js";
import { Stage } from "../support/stage.js";
import type { LoadOrder } from "./load.js";
import type { GatewayRow } from "./row.js";
import { type MeasuredLoad, measureLoad } from "./run-load.js";
import { benchPolicy, type RowsOrder, rowNames } from "./server-rows.js";
import {
  type BenchTransport,
  type HeadgateServerOptions,
  startHeadgate,
  startScript,
} from "./servers.js";

/** What a row puts behind and beside Envoy. */
interface GatewayScenario {
  readonly name: string;
  readonly transport: BenchTransport;
  /** The requests' header fields. */
  readonly heads: readonly string[];
}

/** Clients of Envoy, each with a connection of its own and one request at a time. */
const clientCount = 64;

/** Keys in use; a client's request carries one of them. */
const keyCount = 1_000;

const warmUpMs = 1_000;

/** How often each row is measured. */
const turnCount = 3;

const host = "host: bench";
const asking = Array.from({ length: keyCount }, (_, i) => `${host}\r\nx-user: user-${i}`);

const scenarios: readonly GatewayScenario[] = [
  // Without its header a request has no descriptor, so nobody is asked about it.
  { name: rowNames.gatewayUnasked, transport: "lane", heads: [host] },
  { name: rowNames.gatewayFloor, transport: "grpc-js", heads: asking },
  { name: rowNames.gatewayLane, transport: "lane", heads: asking },
];

/**
 * Requests a second through a real Envoy (one worker), and whose CPU they take. All rows are ready
 * before one is measured, and then take turns: what else the machine does meets all of them.
 */
export async function measureGateways(order: RowsOrder): Promise<readonly GatewayRow[]> {
  const measured = scenarios.filter(({ name }) => name.includes(order.only));
  if (measured.length === 0) return [];
  const policyFile = join(order.directory, "gateway-policy.yaml");
  await writeFile(policyFile, benchPolicy);
  const stage = new Stage();
  await stage.open();
  try {
    const gateways: Gateway[] = [];
    for (const scenario of measured) {
      gateways.push(await startGateway(stage, scenario, { ...order, policyFile }));
    }
    for (let turn = 0; turn < turnCount; turn += 1) {
      for (const gateway of gateways) {
        process.stderr.write(`${gateway.scenario.name}, turn ${turn + 1} ... `);
        const { report } = await takeTurn(gateway, order.measureMs / turnCount);
        const callsPerSecond = (report.callCount / report.elapsedMs) * 1_000;
        process.stderr.write(`${Math.round(callsPerSecond)} a second\n`);
      }
    }
    return gateways.map(rowOf);
  } finally {
    await stage.close();
  }
}

/** A running row. */
interface Gateway {
  readonly scenario: GatewayScenario;
  readonly port: number;
  /** Of Envoy, Headgate and the upstream. */
  readonly pids: readonly number[];
  readonly turns: MeasuredLoad[];
}

async function startGateway(
  stage: Stage,
  scenario: GatewayScenario,
  { policyFile, nodeOptions }: Omit<HeadgateServerOptions, "transport">,
): Promise<Gateway> {
  const { transport } = scenario;
  const headgate = await startHeadgate({ policyFile, transport, nodeOptions });
  stage.atEnd(() => headgate.stop());
  const upstream = await startScript("./upstream-server.ts", []);
  stage.atEnd(() => upstream.stop());
  const envoy = await Envoy.start(stage, {
    ...envoyOptions,
    upstreamPort: upstream.port,
    headgatePorts: [headgate.port],
  });
  const pids = [envoy.pid, headgate.pid, upstream.pid];
  return { scenario, port: envoy.port, pids, turns: [] };
}

async function takeTurn(gateway: Gateway, durationMs: number): Promise<MeasuredLoad> {
  const { scenario, port, pids, turns } = gateway;
  const order: LoadOrder = {
    port,
    calls: { kind: "http", heads: scenario.heads },
    connectionCount: clientCount,
    pace: { kind: "closed", inFlightPerConnection: 1 },
    warmUpMs,
    durationMs,
  };
  const turn = await measureLoad(order, pids);
  turns.push(turn);
  return turn;
}

/** All turns as one; of times the worst turn's, since they cannot be added. */
function rowOf({ scenario, turns }: Gateway): GatewayRow {
  const sum = (of: (turn: MeasuredLoad) => number): number =>
    turns.reduce((total, turn) => total + of(turn), 0);
  const callCount = sum(({ report }) => report.callCount);
  const [envoyUs = 0, headgateUs = 0, upstreamUs = 0] = [0, 1, 2].map(
    (process) => sum(({ cpuUs }) => cpuUs[process] ?? 0) / callCount,
  );
  return {
    name: scenario.name,
    requestsPerSecond: (callCount / sum(({ report }) => report.elapsedMs)) * 1_000,
    ...{ envoyUs, headgateUs, upstreamUs },
    loadUs: sum(({ loadCpuUs }) => loadCpuUs) / callCount,
    p50Ms: Math.max(...turns.map(({ report }) => report.p50Ms)),
    p99Ms: Math.max(...turns.map(({ report }) => report.p99Ms)),
    failedCount: sum(({ report }) => report.failedCount),
    deniedCount: sum(({ report }) => report.deniedCount),
  };
}

const envoyOptions: Omit<EnvoyOptions, "upstreamPort" | "headgatePorts"> = {
  domain: "bench",
  rateLimits: [{ actions: [fromHeader("x-user", "user")] }],
  filter: { enable_x_ratelimit_headers: "OFF", enable_retry_after_header: false },
};
