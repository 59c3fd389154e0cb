import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChildProgram } from "../support/child-program.js";
import { freePort } from "../support/free-port.js";
import { RedisServer } from "../support/redis-server.js";
import { waitFor } from "../support/wait.js";
import type { CallOutcome } from "./call-outcome.js";
import { connectClient, type LoadCalls } from "./load-client.js";
import { type ProofParts, type ProofRow, reasonOf } from "./proof.js";
import type { Row } from "./row.js";
import { defaultLoad, measure, rateLimitCalls, type Scenario } from "./scenario.js";
import { type BenchServer, startHeadgate, stop } from "./servers.js";

/** A server that decides what we decide, and how both are asked. */
interface Reference {
  readonly name: string;
  /** Names its binary. */
  readonly variable: string;
  /** What it is asked; the commands of RESP name their limit. */
  readonly calls: (hitsPerSecond: number) => LoadCalls;
  readonly needsRedis: boolean;
  readonly command: (parts: CommandParts) => Promise<Command>;
}

interface CommandParts {
  readonly folder: string;
  readonly port: number;
  /** For whatever else it serves. */
  readonly otherPorts: readonly [number, number];
  readonly redisPort: number;
  /** What its limit allows each key. */
  readonly hitsPerSecond: number;
}

interface Command {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const keyCount = 20_000;

/** Until then, a JIT compiles what runs often, on a busy machine too. */
const warmUpCalls = 100_000;

/** More a second than any load asks of a key. */
const enoughHits = 1_000_000;

const references: readonly Reference[] = [
  {
    name: "envoyproxy/ratelimit",
    variable: "HEADGATE_BENCH_RATELIMIT",
    calls: () => rateLimitCalls(keyCount),
    needsRedis: true,
    command: async ({ folder, port, otherPorts, redisPort, hitsPerSecond }) => {
      const [httpPort, debugPort] = otherPorts;
      await mkdir(join(folder, "config"));
      await writeFile(join(folder, "config", "bench.yaml"), policyText(hitsPerSecond));
      const env = {
        RUNTIME_ROOT: folder,
        RUNTIME_SUBDIRECTORY: ".",
        RUNTIME_WATCH_ROOT: "false",
        RUNTIME_IGNOREDOTFILES: "true",
        BACKEND_TYPE: "redis",
        REDIS_SOCKET_TYPE: "tcp",
        REDIS_URL: `127.0.0.1:${redisPort}`,
        // "For optimal performance", its README says: writes leave together, as ours do.
        REDIS_PIPELINE_WINDOW: "150us",
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
    calls: () => rateLimitCalls(keyCount),
    needsRedis: false,
    command: async ({ folder, port, otherPorts: [httpPort], hitsPerSecond }) => {
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
    calls: (hitsPerSecond) => throttleCalls("THROTTLE", hitsPerSecond),
    needsRedis: false,
    command: async ({ port }) => {
      const redis = ["--redis", "--redis-host", "127.0.0.1", "--redis-port", String(port)];
      return { args: [...redis, "--store", "adaptive", "--log-level", "error"] };
    },
  },
];

/** Rounds in which both sides are measured in turn; the least CPU and the least p99 count. */
const roundCount = 3;

/** CPU of a decision and p99 at one rate next to other servers, where their binaries are given. */
export function referenceParts(measureMs: number): ProofParts {
  return Object.fromEntries(
    references.map((reference) => [
      `next to ${reference.name}`,
      () => measureReference(reference, measureMs),
    ]),
  );
}

async function measureReference(
  reference: Reference,
  measureMs: number,
): Promise<readonly ProofRow[]> {
  const file = process.env[reference.variable];
  if (file === undefined)
    return absent(reference, `set ${reference.variable} to its binary's path`);
  try {
    return await compare(reference, file, measureMs);
  } catch (error) {
    return absent(reference, reasonOf(error));
  }
}

interface RowNames {
  readonly cpu: string;
  readonly redis: string;
  readonly p99: string;
}

function rowNames({ name }: Reference): RowNames {
  return {
    cpu: `CPU of a decision, of that of ${name}`,
    redis: `Redis's CPU of a decision, of that of ${name}`,
    p99: `p99 at half of the lower rate, of that of ${name}`,
  };
}

function absent(reference: Reference, note: string): readonly ProofRow[] {
  const { cpu, redis, p99 } = rowNames(reference);
  const names = reference.needsRedis ? [cpu, redis, p99] : [cpu, p99];
  return names.map((name) => ({ group: "limits", name, value: Number.NaN, unit: "x", note }));
}

async function compare(
  reference: Reference,
  file: string,
  measureMs: number,
): Promise<readonly ProofRow[]> {
  const redis = reference.needsRedis ? await RedisServer.start({ engine: "redis" }) : undefined;
  const folder = await mkdtemp(join(tmpdir(), "headgate-reference-"));
  try {
    const place = { folder, redis, file };
    const sides = (hitsPerSecond: number) =>
      [
        ownScenario(reference, place, hitsPerSecond),
        otherScenario(reference, place, hitsPerSecond),
      ] as const;
    for (const side of sides(assertedHits)) await assertLimits(side);
    const [own, other] = sides(enoughHits);
    const busy = await inTurn([own, other], measureMs);
    const callsPerSecond = Math.floor(leastOf(busy.flat(), (row) => row.callsPerSecond) / 2);
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
  if (failedCount > all.length) throw new Error(`${failedCount} calls were not allowed`);
  const names = rowNames(reference);
  const leastOfBoth = (sides: Sides, of: (row: Row) => number): readonly number[] =>
    sides.map((rows) => leastOf(rows, of));
  const rates = busy.map((rows) => Math.max(...rows.map((row) => row.callsPerSecond)));
  const most = `at most ${rates.map((rate) => Math.round(rate)).join(" and ")}/s`;
  return [
    ratioRow(
      names.cpu,
      leastOfBoth(busy, (row) => row.cpuUsPerCall),
      (us, of) => `${us.toFixed(1)} and ${of.toFixed(1)} us, ${most}`,
    ),
    ...(reference.needsRedis
      ? [
          ratioRow(
            names.redis,
            leastOfBoth(busy, (row) => row.redisCpuUsPerCall ?? Number.NaN),
            (us, of) => `${us.toFixed(1)} and ${of.toFixed(1)} us`,
          ),
        ]
      : []),
    ratioRow(
      names.p99,
      leastOfBoth(steady, (row) => row.p99Ms),
      (ms, of) => `${ms.toFixed(2)} and ${of.toFixed(2)} ms, ${callsPerSecond}/s`,
    ),
  ];
}

function ratioRow(
  name: string,
  [own = 0, other = 0]: readonly number[],
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

/** Calls for one key at once, and how many a limit allows. Throttlecrab denies none at 1. */
const assertedCalls = 10;
const assertedHits = 2;

/** A server that applies no limit answers sooner: with a low one, it must allow and deny. */
async function assertLimits({ name, calls, start }: Scenario): Promise<void> {
  const server = await start();
  try {
    const client = await connectClient(server.port, calls);
    const outcomes = await Promise.all(
      Array.from(
        { length: assertedCalls },
        () => new Promise<CallOutcome>((done) => client.call(0, done)),
      ),
    );
    client.close();
    const isLimiting = outcomes.includes("allowed") && outcomes.includes("denied");
    if (!isLimiting) throw new Error(`${name} does not limit: ${outcomes.join(", ")}`);
  } finally {
    await server.stop();
  }
}

interface Place {
  readonly folder: string;
  readonly redis: RedisServer | undefined;
  /** The binary of the other server. */
  readonly file: string;
}

function ownScenario(
  { calls }: Reference,
  { folder, redis }: Place,
  hitsPerSecond: number,
): Scenario {
  const asked = calls(hitsPerSecond);
  const isResp = asked.kind === "throttle";
  const start = async (): Promise<BenchServer> => {
    const policyFile = join(folder, "policy.yaml");
    await writeFile(policyFile, policyText(hitsPerSecond));
    const store = redis === undefined ? {} : { redisPort: redis.port };
    const respPort = await freePort();
    const options = { policyFile, nodeOptions: [], ...store };
    if (!isResp) return startHeadgate(options);
    return { ...(await startHeadgate({ ...options, respPort })), port: respPort };
  };
  // The same command by its name here.
  const own = isResp ? throttleCalls("CL.THROTTLE", hitsPerSecond) : asked;
  return { name: "headgate", calls: own, start, ...measured(redis) };
}

function throttleCalls(command: string, hitsPerSecond: number): LoadCalls {
  const rate = String(hitsPerSecond);
  const commands = Array.from({ length: keyCount }, (_, i) => {
    return [command, `user-${i}`, rate, rate, "1"];
  });
  return { kind: "throttle", commands };
}

/** One limit for each key. */
function policyText(hitsPerSecond: number): string {
  return `domain: bench
descriptors:
  - key: user
    rate_limit: { unit: second, requests_per_unit: ${hitsPerSecond} }
`;
}

function otherScenario(
  { name, calls, command }: Reference,
  { folder, redis, file }: Place,
  hitsPerSecond: number,
): Scenario {
  const asked = calls(hitsPerSecond);
  const start = async (): Promise<BenchServer> => {
    const port = await freePort();
    const otherPorts = [await freePort(), await freePort()] as const;
    const own = await mkdtemp(join(folder, "reference-"));
    const parts = { folder: own, port, otherPorts, redisPort: redis?.port ?? 0, hitsPerSecond };
    const program = new ChildProgram({ name, file, ...(await command(parts)) });
    await waitFor(`${name} listens`, async () => {
      if (!program.isRunning) throw new Error(`${name} ended:\n${program.output}`);
      return connectClient(port, asked).then(
        (client) => {
          client.close();
          return true;
        },
        () => false,
      );
    });
    return { pid: program.pid, port, stop: () => stop(program) };
  };
  return { name, calls: asked, start, ...measured(redis) };
}

/** How both sides are measured. */
function measured(
  redis: RedisServer | undefined,
): Pick<Scenario, "load" | "warmUpCalls" | "redisPid"> {
  const own = { load: defaultLoad, warmUpCalls };
  return redis === undefined ? own : { ...own, redisPid: redis.pid };
}
