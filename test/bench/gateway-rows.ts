import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Envoy } from "../support/envoy.js";
import { type EnvoyOptions, fromHeader } from "../support/envoy-config.js";
import { Stage } from "../support/stage.js";
import type { GatewayRow } from "./row.js";
import { measureLoad } from "./run-load.js";
import { benchPolicy, type RowsOrder, rowNames } from "./server-rows.js";
import { type BenchServer, type BenchTransport, startHeadgate, startScript } from "./servers.js";

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

const warmUpMs = 2_000;

const host = "host: bench";
const asking = Array.from({ length: keyCount }, (_, i) => `${host}\r\nx-user: user-${i}`);

const scenarios: readonly GatewayScenario[] = [
  // Without its header a request has no descriptor, so nobody is asked about it.
  { name: rowNames.gatewayUnasked, transport: "lane", heads: [host] },
  { name: rowNames.gatewayFloor, transport: "grpc-js", heads: asking },
  { name: rowNames.gatewayLane, transport: "lane", heads: asking },
];

/** Requests a second through a real Envoy (one worker), and whose CPU they take. */
export async function measureGateways(order: RowsOrder): Promise<readonly GatewayRow[]> {
  const rows: GatewayRow[] = [];
  for (const scenario of scenarios.filter(({ name }) => name.includes(order.only))) {
    process.stderr.write(`${scenario.name} ... `);
    const row = await measureGateway(scenario, order);
    process.stderr.write(`${Math.round(row.requestsPerSecond)} a second\n`);
    rows.push(row);
  }
  return rows;
}

async function measureGateway(
  { name, transport, heads }: GatewayScenario,
  { directory, measureMs, nodeOptions }: RowsOrder,
): Promise<GatewayRow> {
  const policyFile = join(directory, "gateway-policy.yaml");
  await writeFile(policyFile, benchPolicy);
  const stage = new Stage();
  await stage.open();
  const servers: BenchServer[] = [];
  try {
    const headgate = await startHeadgate({ policyFile, transport, nodeOptions });
    servers.push(headgate);
    const upstream = await startScript("./upstream-server.ts", []);
    servers.push(upstream);
    const envoy = await Envoy.start(stage, {
      ...envoyOptions,
      upstreamPort: upstream.port,
      headgatePorts: [headgate.port],
    });
    const { report, cpuUs, loadCpuUs } = await measureLoad(
      {
        port: envoy.port,
        calls: { kind: "http", heads },
        connectionCount: clientCount,
        pace: { kind: "closed", inFlightPerConnection: 1 },
        warmUpMs,
        durationMs: measureMs,
      },
      [envoy.pid, headgate.pid, upstream.pid],
    );
    const { callCount, failedCount, deniedCount, elapsedMs, p50Ms, p99Ms } = report;
    const [envoyUs = 0, headgateUs = 0, upstreamUs = 0] = cpuUs.map((us) => us / callCount);
    const requestsPerSecond = (callCount / elapsedMs) * 1_000;
    const cpu = { envoyUs, headgateUs, upstreamUs, loadUs: loadCpuUs / callCount };
    return { name, requestsPerSecond, ...cpu, p50Ms, p99Ms, failedCount, deniedCount };
  } finally {
    for (const server of servers) await server.stop();
    await stage.close();
  }
}

const envoyOptions: Omit<EnvoyOptions, "upstreamPort" | "headgatePorts"> = {
  domain: "bench",
  rateLimits: [{ actions: [fromHeader("x-user", "user")] }],
  filter: { enable_x_ratelimit_headers: "OFF", enable_retry_after_header: false },
};
