import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { RedisServer } from "../support/redis-server.js";
import { runFuzz } from "./fuzz.js";
import { type InProcessRow, inProcessScenarios, measureInProcess } from "./in-process.js";
import { type MemoryRow, measureMemory } from "./memory-row.js";
import { measureRedisScript, redisScriptScenarios } from "./redis-script.js";
import {
  formatInProcess,
  formatMemory,
  formatRedisScript,
  formatTable,
  type Row,
} from "./report.js";
import { measure, type Scenario } from "./scenario.js";
import { type BenchTransport, startEmptyServer, startHeadgate } from "./servers.js";
import { runSeeds } from "./simulation.js";

const help = `Usage: npm run bench -- [options]

What a decision costs: over gRPC next to a server that decides nothing, then without any transport,
and what the script of a batch costs Redis.
Every row is measured in this run, on this machine; compare rows, not machines.

  --seconds N     how long each row is measured (default 5)
  --only TEXT     rows whose name holds this text
  -o json         the rows as JSON on standard output
  --simulation N  instead of all this: N seeds of the simulation against the exact promise
  --fuzz N        instead of all this: N inputs that nobody should send, to what reads the wire
  --first SEED    the first seed of these two (default 1), to run several parts side by side
  -h, --help      this text`;

/** What every limit of the bench allows: as much as there is, so that no row is about denials. */
const policyText = `domain: bench
descriptors:
  - key: user
    rate_limit: { unit: second, requests_per_unit: 4294967295 }
`;

const hotKey = { name: "one hot key", keyCount: 1 };
const manyKeys = { name: "20,000 keys", keyCount: 20_000 };
const transports: readonly BenchTransport[] = ["grpc-js", "lane"];

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "5" },
      only: { type: "string", default: "" },
      output: { type: "string", short: "o", default: "table" },
      simulation: { type: "string" },
      fuzz: { type: "string" },
      first: { type: "string", default: "1" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(`${help}\n`);
    return;
  }
  if (values.simulation !== undefined) {
    await simulate(Number(values.simulation), Number(values.first));
    return;
  }
  if (values.fuzz !== undefined) {
    fuzz(Number(values.fuzz), Number(values.first));
    return;
  }
  const measureMs = Number(values.seconds) * 1_000;
  if (!(measureMs >= 500)) throw new Error("--seconds must be a number of at least 0.5");
  const directory = await mkdtemp(join(tmpdir(), "headgate-bench-"));
  try {
    const rows = await runServers({ directory, measureMs, only: values.only });
    // First, while this process holds nothing else.
    const memory = await runMemory({ measureMs, only: values.only });
    const inProcess = await runInProcess({ measureMs, only: values.only });
    const redisScript = await measureRedisScript(
      redisScriptScenarios.filter(({ name }) => `script, ${name}`.includes(values.only)),
      measureMs,
    );
    const text =
      values.output === "json"
        ? JSON.stringify({ rows, inProcess, memory, redisScript }, undefined, 2)
        : [
            formatTable(rows),
            formatInProcess(inProcess),
            ...memory.map(formatMemory),
            formatRedisScript(redisScript),
          ]
            .filter((part) => part !== "")
            .join("\n\n");
    process.stdout.write(`${text}\n`);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function simulate(count: number, first: number): Promise<void> {
  if (!(count >= 1 && first >= 0)) throw new Error("--simulation and --first take whole numbers");
  const failure = await runSeeds({ first, count });
  process.stdout.write(failure === undefined ? "No seed failed.\n" : `${failure}\n`);
  if (failure !== undefined) process.exitCode = 1;
}

function fuzz(count: number, first: number): void {
  if (!(count >= 1 && first >= 0)) throw new Error("--fuzz and --first take whole numbers");
  const failure = runFuzz({ first, count });
  process.stdout.write(failure === undefined ? "No input failed.\n" : `${failure}\n`);
  if (failure !== undefined) process.exitCode = 1;
}

interface Order {
  readonly directory: string;
  readonly measureMs: number;
  readonly only: string;
}

async function runServers({ directory, measureMs, only }: Order): Promise<readonly Row[]> {
  const policyFile = join(directory, "policy.yaml");
  await writeFile(policyFile, policyText);
  const redis = await RedisServer.start({ engine: "redis" });
  try {
    const emptyServer = (transport: BenchTransport) => ({
      keyCount: 1,
      start: () => startEmptyServer(transport),
    });
    const scenarios: readonly Scenario[] = [
      { name: "empty @grpc/grpc-js server", ...emptyServer("grpc-js") },
      { name: "empty lane server", ...emptyServer("lane") },
      ...transports.flatMap((transport) => [
        ...[hotKey, manyKeys].map((keys) => ({
          name: `memory, ${keys.name}, ${transport}`,
          keyCount: keys.keyCount,
          start: () => startHeadgate({ policyFile, transport }),
        })),
        ...[hotKey, manyKeys].map((keys) => ({
          name: `Redis, ${keys.name}, ${transport}`,
          keyCount: keys.keyCount,
          redisPid: redis.pid,
          start: () => startHeadgate({ policyFile, transport, redisPort: redis.port }),
        })),
      ]),
      // What batches buy, and what is left without them.
      ...[1, 8].flatMap((inFlightOnOne) =>
        transports.map((transport) => ({
          name: `empty, ${inFlightOnOne} in flight on one, ${transport}`,
          ...emptyServer(transport),
          inFlightOnOne,
        })),
      ),
    ].filter((scenario) => scenario.name.includes(only));
    const rows: Row[] = [];
    for (const scenario of scenarios) {
      process.stderr.write(`${scenario.name} ... `);
      const row = await measure(scenario, measureMs);
      process.stderr.write(`${Math.round(row.callsPerSecond)} a second\n`);
      rows.push(row);
    }
    return rows;
  } finally {
    await redis.stop();
  }
}

/** Enough decisions that a row takes about a fifth of the time that a server's row takes. */
async function runInProcess({
  measureMs,
  only,
}: {
  readonly measureMs: number;
  readonly only: string;
}): Promise<readonly InProcessRow[]> {
  const rows: InProcessRow[] = [];
  for (const scenario of inProcessScenarios) {
    if (!`in process, ${scenario.name}`.includes(only)) continue;
    process.stderr.write(`in process, ${scenario.name} ... `);
    const row = await measureInProcess(scenario, measureMs * decisionsPerMs);
    process.stderr.write(`${row.cpuUsPerDecision.toFixed(2)} us\n`);
    rows.push(row);
  }
  process.stderr.write(`${cpus().length} cores, Node ${process.version}\n\n`);
  return rows;
}

const decisionsPerMs = 50;

/** Ten steps; at the default of five seconds they are ten million decisions. */
async function runMemory({
  measureMs,
  only,
}: Pick<Order, "measureMs" | "only">): Promise<readonly MemoryRow[]> {
  if (!"in process, memory".includes(only)) return [];
  process.stderr.write("in process, memory ...\n");
  return [await measureMemory(10, measureMs * 200)];
}

await main();
