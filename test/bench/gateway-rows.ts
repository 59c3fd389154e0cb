import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Envoy } from "../support/envoy.js";
import { type EnvoyOptions, fromHeader, httpFilter, type Json } from "../support/envoy-config.js";
import { Stage } from "../support/stage.js";
import type { LoadOrder, LoadReport } from "./load.js";
import type { GatewayRow } from "./row.js";
import { type MeasuredLoad, measureLoad } from "./run-load.js";
import { benchPolicy, type RowsOrder, rowNames } from "./server-rows.js";
import {
  type BenchTransport,
  type HeadgateServerOptions,
  startHeadgate,
  startScript,
} from "./servers.js";

/** What a row puts in front of Envoy, behind it and beside it. */
interface GatewayScenario {
  readonly name: string;
  readonly transport: BenchTransport;
  readonly load: Pick<LoadOrder, "calls" | "connectionCount" | "pace">;
  /** Filters behind the one that asks. */
  readonly filtersAfter?: readonly Json[];
}

/** Keys in use; a request carries one of them. */
const keyCount = 1_000;

const users = Array.from({ length: keyCount }, (_, i) => `user-${i}`);
const host = "host: bench";

/** Clients of HTTP/1.1, each with a connection of its own and one request at a time. */
function manyClients(heads: readonly string[]): GatewayScenario["load"] {
  return {
    calls: { kind: "http1", heads },
    connectionCount: 64,
    pace: { kind: "closed", inFlightPerConnection: 1 },
  };
}

/** As many requests in flight over HTTP/2: what costs Envoy and its clients least. */
const fewClients: GatewayScenario["load"] = {
  calls: { kind: "http2", heads: users.map((user) => [["x-user", user]]) },
  connectionCount: 4,
  pace: { kind: "closed", inFlightPerConnection: 16 },
};

/** An answer without an upstream: a route's own would come before anybody is asked. */
const filtersAfter: readonly Json[] = [
  httpFilter("fault", "HTTPFault", {
    abort: { http_status: 200, percentage: { numerator: 100 } },
  }),
];

const asking = manyClients(users.map((user) => `${host}\r\nx-user: ${user}`));

/** What most gateways are: clients of HTTP/1.1, and an upstream. */
const defaultScenarios: readonly GatewayScenario[] = [
  // Without its header a request has no descriptor, so nobody is asked about it.
  { name: rowNames.gatewayUnasked, transport: "native", load: manyClients([host]) },
  { name: rowNames.gatewayFloor, transport: "grpc-js", load: asking },
  { name: rowNames.gatewayNative, transport: "native", load: asking },
];

/** Envoy and whom it asks, with as little as can be around them. */
const bareScenarios: readonly GatewayScenario[] = [
  { name: rowNames.filterFloor, transport: "grpc-js", load: fewClients, filtersAfter },
  { name: rowNames.filterNative, transport: "native", load: fewClients, filtersAfter },
];

const warmUpMs = 1_000;

/** How often each row is measured. */
const turnCount = 3;

/** Requests a second through a real Envoy (one worker), and whose CPU they take. */
export async function measureGateways(order: RowsOrder): Promise<readonly GatewayRow[]> {
  const usual = await measureInTurns(defaultScenarios, order);
  return [...usual, ...(await measureInTurns(bareScenarios, order))];
}

/**
 * All rows are ready before one is measured, and then take turns: what else the machine does meets
 * all of them.
 */
async function measureInTurns(
  scenarios: readonly GatewayScenario[],
  order: RowsOrder,
): Promise<readonly GatewayRow[]> {
  const wanted = scenarios.filter(({ name }) => name.includes(order.only));
  if (wanted.length === 0) return [];
  const policyFile = join(order.directory, "gateway-policy.yaml");
  await writeFile(policyFile, benchPolicy);
  const stage = new Stage();
  await stage.open();
  try {
    const gateways: Gateway[] = [];
    for (const scenario of wanted) {
      gateways.push(await startGateway(stage, scenario, { ...order, policyFile }));
    }
    for (let turn = 0; turn < turnCount; turn += 1) {
      for (const gateway of gateways) {
        process.stderr.write(`${gateway.scenario.name}, turn ${turn + 1} ... `);
        const measured = await takeTurn(gateway, order.measureMs / turnCount);
        process.stderr.write(`${Math.round(rateOf(measured))} a second\n`);
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
    filtersAfter: scenario.filtersAfter ?? [],
  });
  const pids = [envoy.pid, headgate.pid, upstream.pid];
  return { scenario, port: envoy.port, pids, turns: [] };
}

async function takeTurn(gateway: Gateway, durationMs: number): Promise<MeasuredLoad> {
  const { scenario, port, pids, turns } = gateway;
  const order: LoadOrder = {
    port,
    ...scenario.load,
    warmUpMs,
    durationMs,
  };
  const turn = await measureLoad(order, pids);
  turns.push(turn);
  return turn;
}

/** Of all turns the fastest: what else the machine does makes none of them faster. */
function rowOf({ scenario, turns }: Gateway): GatewayRow {
  const [best] = [...turns].sort((one, other) => rateOf(other) - rateOf(one));
  if (best === undefined) throw new Error("every row takes its turns");
  const { callCount, p50Ms, p99Ms } = best.report;
  const [envoyUs = 0, headgateUs = 0, upstreamUs = 0] = best.cpuUs.map((us) => us / callCount);
  const sum = (of: (report: LoadReport) => number): number =>
    turns.reduce((total, { report }) => total + of(report), 0);
  return {
    name: scenario.name,
    requestsPerSecond: rateOf(best),
    ...{ envoyUs, headgateUs, upstreamUs, loadUs: best.loadCpuUs / callCount },
    ...{ p50Ms, p99Ms },
    failedCount: sum(({ failedCount }) => failedCount),
    deniedCount: sum(({ deniedCount }) => deniedCount),
  };
}

function rateOf({ report }: MeasuredLoad): number {
  return (report.callCount / report.elapsedMs) * 1_000;
}

const envoyOptions: Omit<EnvoyOptions, "upstreamPort" | "headgatePorts" | "filtersAfter"> = {
  domain: "bench",
  rateLimits: [{ actions: [fromHeader("x-user", "user")] }],
  filter: { enable_x_ratelimit_headers: "OFF", enable_retry_after_header: false },
};
