import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RedisServer } from "../support/redis-server.js";
import { exchangeCalls } from "./exchange-messages.js";
import type { Row, ServerRows, SteadyRows } from "./row.js";
import {
  defaultLoad,
  measure,
  rateLimitCalls,
  type Scenario,
  type ScenarioLoad,
} from "./scenario.js";
import {
  type BenchServer,
  type BenchTransport,
  startEmptyServer,
  startExchangeServer,
  startHeadgate,
} from "./servers.js";

/** What rows are measured, where and for how long. */
export interface RowsOrder {
  /** For the policy's file. */
  readonly directory: string;
  readonly measureMs: number;
  /** Rows whose name holds this text. */
  readonly only: string;
  /** Options of Node for every server. */
  readonly nodeOptions: readonly string[];
}

/** Names of rows that others are compared with. */
export const rowNames = {
  floor: "empty @grpc/grpc-js server",
  emptyNative: "empty native server",
  memoryNative: "memory, 20,000 keys, native",
  redisNative: "Redis, 20,000 keys, native",
  exchangeFloor: "exchange of headers, grpc-js",
  exchangeNative: "exchange of headers, native",
  steadyFloor: "steady, empty @grpc/grpc-js server",
  steadyEmptyNative: "steady, empty native server",
  steadyMemoryNative: "steady, memory, 20,000 keys, native",
  steadyRedisNative: "steady, Redis, 20,000 keys, native",
  gatewayUnasked: "through Envoy, nobody asked",
  gatewayFloor: "through Envoy, memory, 1,000 keys, grpc-js",
  gatewayNative: "through Envoy, memory, 1,000 keys, native",
  filterFloor: "through Envoy, HTTP/2, no upstream, grpc-js",
  filterNative: "through Envoy, HTTP/2, no upstream, native",
} as const;

/** What every limit of the bench allows: as much as there is, so that no row is about denials. */
export const benchPolicy = `domain: bench
descriptors:
  - key: user
    rate_limit: { unit: second, requests_per_unit: 4294967295 }
`;

const transports: readonly BenchTransport[] = ["grpc-js", "native"];
const hotKey = { label: "one hot key", calls: rateLimitCalls(1) };
const manyKeys = { label: "20,000 keys", calls: rateLimitCalls(20_000) };

/** Measures them, one after the other, on one Redis. */
export async function measureServers(order: RowsOrder): Promise<ServerRows> {
  const policyFile = join(order.directory, "policy.yaml");
  await writeFile(policyFile, benchPolicy);
  const redis = await RedisServer.start({ engine: "redis" });
  try {
    const parts = { policyFile, redis, nodeOptions: order.nodeOptions };
    const calls = await measureAll(callScenarios(parts), order);
    const exchanges = await measureAll(exchangeScenarios(parts), order);
    return { calls, exchanges, steady: await measureSteady(parts, calls, order) };
  } finally {
    await redis.stop();
  }
}

interface Parts {
  readonly policyFile: string;
  readonly redis: RedisServer;
  readonly nodeOptions: readonly string[];
}

function callScenarios(parts: Parts): readonly Scenario[] {
  const { nodeOptions } = parts;
  const empty = (transport: BenchTransport): Pick<Scenario, "calls" | "start"> => ({
    calls: hotKey.calls,
    start: () => startEmptyServer({ transport, nodeOptions }),
  });
  return [
    { name: rowNames.floor, ...empty("grpc-js"), load: defaultLoad },
    { name: rowNames.emptyNative, ...empty("native"), load: defaultLoad },
    ...transports.flatMap((transport) => {
      const stores = [memoryStore(parts, transport), redisStore(parts, transport)];
      return stores.flatMap(({ label, ...store }) =>
        [hotKey, manyKeys].map(({ label: keys, calls }) => ({
          name: `${label}, ${keys}, ${transport}`,
          calls,
          ...store,
          load: defaultLoad,
        })),
      );
    }),
    // What batches buy, and what is left without them.
    ...[1, 8].flatMap((inFlightPerConnection) =>
      transports.map((transport) => ({
        name: `empty, ${inFlightPerConnection} in flight on one, ${transport}`,
        ...empty(transport),
        load: { connectionCount: 1, pace: { kind: "closed" as const, inFlightPerConnection } },
      })),
    ),
  ];
}

/** Headgate with one store. */
type StoreParts = Pick<Scenario, "start" | "redisPid"> & { readonly label: string };

function memoryStore({ policyFile, nodeOptions }: Parts, transport: BenchTransport): StoreParts {
  const start = (): Promise<BenchServer> => startHeadgate({ policyFile, transport, nodeOptions });
  return { label: "memory", start };
}

function redisStore(
  { policyFile, nodeOptions, redis }: Parts,
  transport: BenchTransport,
): StoreParts {
  const start = (): Promise<BenchServer> =>
    startHeadgate({ policyFile, transport, nodeOptions, redisPort: redis.port });
  return { label: "Redis", start, redisPid: redis.pid };
}

function exchangeScenarios({ nodeOptions }: Parts): readonly Scenario[] {
  const calls = exchangeCalls();
  const names = { "grpc-js": rowNames.exchangeFloor, native: rowNames.exchangeNative };
  return transports.map((transport) => ({
    name: names[transport],
    calls,
    start: () => startExchangeServer({ transport, nodeOptions }),
    load: defaultLoad,
  }));
}

/** Rows at half of what the empty server of the library takes; none when none is asked for. */
async function measureSteady(
  parts: Parts,
  calls: readonly Row[],
  order: RowsOrder,
): Promise<SteadyRows | undefined> {
  const { nodeOptions } = parts;
  const empty = (transport: BenchTransport): Pick<Scenario, "calls" | "start"> => ({
    calls: hotKey.calls,
    start: () => startEmptyServer({ transport, nodeOptions }),
  });
  const floor = { name: rowNames.floor, ...empty("grpc-js"), load: defaultLoad };
  const scenarios = [
    { name: rowNames.steadyFloor, ...empty("grpc-js") },
    { name: rowNames.steadyEmptyNative, ...empty("native") },
    { name: rowNames.steadyMemoryNative, calls: manyKeys.calls, ...memoryStore(parts, "native") },
    { name: rowNames.steadyRedisNative, calls: manyKeys.calls, ...redisStore(parts, "native") },
  ].filter(({ name }) => name.includes(order.only));
  if (scenarios.length === 0) return undefined;
  const saturated =
    calls.find(({ name }) => name === rowNames.floor) ?? (await measure(floor, order.measureMs));
  const callsPerSecond = saturated.callsPerSecond / 2;
  const load: ScenarioLoad = {
    connectionCount: defaultLoad.connectionCount,
    pace: { kind: "open", callsPerSecond, seed: steadySeed },
  };
  const loaded = scenarios.map((scenario) => ({ ...scenario, load }));
  const rows: Row[] = [];
  for (let turn = 0; turn < steadyTurnCount; turn += 1) {
    rows.push(...(await measureAll(loaded, order)));
  }
  return { callsPerSecond, rows: loaded.map(({ name }) => bestOf(rows, name)) };
}

/**
 * How often each row is measured. A p99 is the hundredth part that went worst, and what else the
 * machine does is most of it: the turn that it met least is what the server does.
 */
const steadyTurnCount = 3;

function bestOf(rows: readonly Row[], name: string): Row {
  const [best] = rows
    .filter((row) => row.name === name)
    .sort((one, other) => one.p99Ms - other.p99Ms);
  if (best === undefined) throw new Error("every row takes its turns");
  return best;
}

/** All rows get the same calls at the same times. */
const steadySeed = 1;

async function measureAll(
  scenarios: readonly Scenario[],
  { only, measureMs }: Pick<RowsOrder, "only" | "measureMs">,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const scenario of scenarios.filter(({ name }) => name.includes(only))) {
    process.stderr.write(`${scenario.name} ... `);
    const row = await measure(scenario, measureMs);
    process.stderr.write(`${Math.round(row.callsPerSecond)} a second\n`);
    rows.push(row);
  }
  return rows;
}
