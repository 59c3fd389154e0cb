import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChildProgram } from "../support/child-program.js";
import { freePort } from "../support/free-port.js";
import { RedisServer } from "../support/redis-server.js";
import { waitFor } from "../support/wait.js";
import { connectClient, type LoadCalls } from "./load-client.js";
import type { ProofRow } from "./proof.js";
import type { Row } from "./row.js";
import { defaultLoad, measure, rateLimitCalls, type Scenario } from "./scenario.js";
import { benchPolicy } from "./server-rows.js";
import { type BenchServer, startHeadgate, stop } from "./servers.js";

/** A server that decides what we decide, and how both are asked. */
interface Reference {
  readonly name: string;
  /** Names its binary. */
  readonly variable: string;
  readonly calls: LoadCalls;
  readonly needsRedis: boolean;
  readonly command: (parts: CommandParts) => Promise<Command>;
  /** Whether we are asked over RESP. */
  readonly isResp: boolean;
}

interface CommandParts {
  readonly folder: string;
  readonly port: number;
  /** For whatever else it serves. */
  readonly otherPorts: readonly [number, number];
  readonly redisPort: number;
}

interface Command {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const keyCount = 20_000;

/** More a second than any load asks of a key. */
const hitsPerSecond = "1000000";

const references: readonly Reference[] = [
  {
    name: "envoyproxy/ratelimit",
    variable: "HEADGATE_BENCH_RATELIMIT",
    calls: rateLimitCalls(keyCount),
    needsRedis: true,
    isResp: false,
    command: async ({ folder, port, otherPorts: [httpPort, debugPort], redisPort }) => {
      await mkdir(join(folder, "config"));
      await writeFile(join(folder, "config", "bench.yaml"), benchPolicy);
      const env = {
        RUNTIME_ROOT: folder,
        RUNTIME_SUBDIRECTORY: ".",
        RUNTIME_WATCH_ROOT: "false",
        RUNTIME_IGNOREDOTFILES: "true",
        BACKEND_TYPE: "redis",
        REDIS_SOCKET_TYPE: "tcp",
        REDIS_URL: `127.0.0.1:${redisPort}`,
        USE_STATSD: "false",
        LOG_LEVEL: "error",
        GRPC_PORT: String(port),
        PORT: String(httpPort),
        DEBUG_PORT: String(debugPort),
      };
      return { args: [], env };
    },
  },
  {
    name: "limitador",
    variable: "HEADGATE_BENCH_LIMITADOR",
    calls: rateLimitCalls(keyCount),
    needsRedis: false,
    isResp: false,
    command: async ({ folder, port, otherPorts: [httpPort] }) => {
      const limits = join(folder, "limits.yaml");
      const value = `max_value: ${hitsPerSecond}, seconds: 1, conditions: []`;
      await writeFile(
        limits,
        `- {namespace: bench, ${value}, variables: ["descriptors[0].user"]}\n`,
      );
      const serve = ["--rls-ip", "127.0.0.1", "--rls-port", String(port)];
      const http = ["--http-ip", "127.0.0.1", "--http-port", String(httpPort)];
      return { args: [...serve, ...http, limits, "memory"] };
    },
  },
  {
    name: "throttlecrab",
    variable: "HEADGATE_BENCH_THROTTLECRAB",
    calls: {
      kind: "throttle",
      commands: Array.from({ length: keyCount }, (_, i) => [
        "THROTTLE",
        `user-${i}`,
        hitsPerSecond,
        hitsPerSecond,
        "1",
      ]),
    },
    needsRedis: false,
    isResp: true,
    command: async ({ port }) => {
      const redis = ["--redis", "--redis-host", "127.0.0.1", "--redis-port", String(port)];
      return { args: [...redis, "--store", "adaptive", "--log-level", "error"] };
    },
  },
];

/** Rounds in which both sides are measured in turn; the least CPU and the least p99 count. */
const roundCount = 3;

/** CPU of a decision and p99 at one rate next to other servers, where their binaries are given. */
export async function measureReferences(measureMs: number): Promise<readonly ProofRow[]> {
  const rows: ProofRow[] = [];
  for (const reference of references) {
    const file = process.env[reference.variable];
    rows.push(
      ...(file === undefined ? absent(reference) : await compare(reference, file, measureMs)),
    );
  }
  return rows;
}

function rowNames({ name }: Reference): readonly [cpu: string, p99: string] {
  return [`CPU of a decision, of that of ${name}`, `p99 at half of its most, of that of ${name}`];
}

function absent(reference: Reference): readonly ProofRow[] {
  const note = `set ${reference.variable} to the path of its binary`;
  return rowNames(reference).map((name) => {
    return { group: "limits", name, value: Number.NaN, unit: "x", note };
  });
}

async function compare(
  reference: Reference,
  file: string,
  measureMs: number,
): Promise<readonly ProofRow[]> {
  process.stderr.write(`next to ${reference.name} ...\n`);
  const redis = reference.needsRedis ? await RedisServer.start({ engine: "redis" }) : undefined;
  const folder = await mkdtemp(join(tmpdir(), "headgate-reference-"));
  try {
    const own = ownScenario(reference, { folder, redis });
    const other = otherScenario(reference, file, { folder, redis });
    const busy = await inTurn([own, other], measureMs);
    const callsPerSecond = Math.floor(leastOf(busy[1], (row) => row.callsPerSecond) / 2);
    const pace = { kind: "open", callsPerSecond, seed: 1 } as const;
    const load = { connectionCount: defaultLoad.connectionCount, pace };
    const steady = await inTurn(
      [
        { ...own, load },
        { ...other, load },
      ],
      measureMs,
    );
    return rowsOf(reference, { busy, steady, callsPerSecond });
  } finally {
    await rm(folder, { recursive: true, force: true });
    await redis?.stop();
  }
}

type Sides = readonly [own: readonly Row[], other: readonly Row[]];

interface Measured {
  readonly busy: Sides;
  readonly steady: Sides;
  readonly callsPerSecond: number;
}

function rowsOf(
  reference: Reference,
  { busy, steady, callsPerSecond }: Measured,
): readonly ProofRow[] {
  const all = [...busy, ...steady].flat();
  const failedCount = all.reduce((sum, row) => sum + row.failedCount + row.deniedCount, 0);
  if (failedCount > all.length) throw new Error(`${reference.name}: ${failedCount} not allowed`);
  const [cpu, otherCpu] = busy.map((rows) => leastOf(rows, (row) => row.cpuUsPerCall));
  const redis = busy.map((rows) => leastOf(rows, (row) => row.redisCpuUsPerCall ?? 0).toFixed(1));
  const [p99, otherP99] = steady.map((rows) => leastOf(rows, (row) => row.p99Ms));
  const told = reference.needsRedis ? `, and ${redis.join(" and ")} of Redis` : "";
  const [cpuName, p99Name] = rowNames(reference);
  return [
    ratioRow(
      cpuName,
      [cpu, otherCpu],
      (us, of) => `${us.toFixed(1)} and ${of.toFixed(1)} us${told}`,
    ),
    ratioRow(
      p99Name,
      [p99, otherP99],
      (ms, of) => `${ms.toFixed(2)} and ${of.toFixed(2)} ms, ${callsPerSecond}/s`,
    ),
  ];
}

function ratioRow(
  name: string,
  [own = 0, other = 0]: readonly (number | undefined)[],
  noteOf: (own: number, other: number) => string,
): ProofRow {
  const ratio = own / other;
  const note = noteOf(own, other);
  return { group: "limits", name, value: ratio, unit: "x", target: { most: 1 }, ratio, note };
}

async function inTurn(scenarios: readonly [Scenario, Scenario], measureMs: number): Promise<Sides> {
  const [own, other]: [Row[], Row[]] = [[], []];
  for (let round = 0; round < roundCount; round += 1) {
    own.push(await measure(scenarios[0], measureMs));
    other.push(await measure(scenarios[1], measureMs));
  }
  return [own, other];
}

function leastOf(rows: readonly Row[], of: (row: Row) => number): number {
  return Math.min(...rows.map(of));
}

interface Place {
  readonly folder: string;
  readonly redis: RedisServer | undefined;
}

function ownScenario({ calls, isResp }: Reference, { folder, redis }: Place): Scenario {
  const start = async (): Promise<BenchServer> => {
    const policyFile = join(folder, "policy.yaml");
    await writeFile(policyFile, benchPolicy);
    const store = redis === undefined ? {} : { redisPort: redis.port };
    const respPort = await freePort();
    const options = { policyFile, nodeOptions: [], ...store };
    if (!isResp) return startHeadgate(options);
    return { ...(await startHeadgate({ ...options, respPort })), port: respPort };
  };
  const own = calls.kind === "throttle" ? clThrottle(calls) : calls;
  return { name: "headgate", calls: own, start, load: defaultLoad, ...pidOf(redis) };
}

/** The same command by its name here. */
function clThrottle({ commands }: Extract<LoadCalls, { kind: "throttle" }>): LoadCalls {
  return { kind: "throttle", commands: commands.map(([, ...rest]) => ["CL.THROTTLE", ...rest]) };
}

function otherScenario(
  { name, calls, command }: Reference,
  file: string,
  { folder, redis }: Place,
): Scenario {
  const start = async (): Promise<BenchServer> => {
    const port = await freePort();
    const otherPorts = [await freePort(), await freePort()] as const;
    const own = await mkdtemp(join(folder, "reference-"));
    const parts = { folder: own, port, otherPorts, redisPort: redis?.port ?? 0 };
    const program = new ChildProgram({ name, file, ...(await command(parts)) });
    await waitFor(`${name} listens`, async () => {
      if (!program.isRunning) throw new Error(`${name} ended:\n${program.output}`);
      return connectClient(port, calls).then(
        (client) => {
          client.close();
          return true;
        },
        () => false,
      );
    });
    return { pid: program.pid, port, stop: () => stop(program) };
  };
  return { name, calls, start, load: defaultLoad, ...pidOf(redis) };
}

function pidOf(redis: RedisServer | undefined): Pick<Scenario, "redisPid"> {
  return redis === undefined ? {} : { redisPid: redis.pid };
}
