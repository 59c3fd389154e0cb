import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { admissionScenarios, measureAdmission } from "./admission.js";
import { tellFleets } from "./fleet-loop.js";
import { runFuzz } from "./fuzz.js";
import { measureGateways } from "./gateway-rows.js";
import { type InProcessRow, inProcessScenarios, measureInProcess } from "./in-process.js";
import { tellLaws } from "./laws.js";
import { type MemoryRow, measureMemory } from "./memory-row.js";
import { tellOverload } from "./overload.js";
import { tellQueueing } from "./queueing.js";
import { measureRedisScript, redisScriptScenarios } from "./redis-script.js";
import {
  formatAdmission,
  formatComparisons,
  formatGateways,
  formatInProcess,
  formatMemory,
  formatRedisScript,
  formatServers,
} from "./report.js";
import { measureServers, type RowsOrder } from "./server-rows.js";
import { runSeeds } from "./simulation.js";
import { compare } from "./targets.js";

const help = `Usage: npm run bench -- [options]

What a decision costs: over gRPC next to a server that decides nothing, at a steady rate, in an
exchange of ext_proc, through a real Envoy, then without any transport, and what the script of a
batch costs Redis. What was aimed at stands under the tables, with what this run shows.
Every row is measured in this run, on this machine; compare rows, not machines.

  --seconds N     how long each row is measured (default 5)
  --only TEXT     rows whose name holds this text
  -o json         the rows as JSON on standard output
  --profile DIR   a CPU profile of every server's process into this folder
  --simulation N  instead of all this: N seeds of the simulation against the exact promise
  --fuzz N        instead of all this: N inputs that nobody should send, to what serves the wire
  --laws N        instead of all this: N seeds of the concurrency laws in simulated overload
  --queueing N    instead of all this: N requests against Erlang's formula, and queues in overload
  --overload N    instead of all this: N seconds each of an upstream under 3 and 10 times its load,
                  by what protects it, with pictures in test-output
  --fleet N       instead of all this: N seeds of the fleet's loop, big fleets, and its cost
  --first SEED    the first seed of --simulation, --fuzz and --fleet (default 1), for parts of it
  -h, --help      this text`;

/** Options of what runs instead of the rows, as texts. */
interface InsteadValues {
  readonly simulation?: string;
  readonly fuzz?: string;
  readonly laws?: string;
  readonly queueing?: string;
  readonly fleet?: string;
  readonly overload?: string;
  readonly first: string;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "5" },
      only: { type: "string", default: "" },
      output: { type: "string", short: "o", default: "table" },
      profile: { type: "string" },
      simulation: { type: "string" },
      fuzz: { type: "string" },
      laws: { type: "string" },
      queueing: { type: "string" },
      fleet: { type: "string" },
      overload: { type: "string" },
      first: { type: "string", default: "1" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(`${help}\n`);
    return;
  }
  if (await runInstead(values)) return;
  const measureMs = Number(values.seconds) * 1_000;
  if (!(measureMs >= 500)) throw new Error("--seconds must be a number of at least 0.5");
  const directory = await mkdtemp(join(tmpdir(), "headgate-bench-"));
  try {
    const nodeOptions = profileOptions(values.profile);
    const order = { directory, measureMs, only: values.only, nodeOptions };
    const servers = await measureServers(order);
    const gateways = await measureGateways(order);
    const comparisons = compare({ servers, gateways });
    // First, while this process holds nothing else.
    const memory = await runMemory({ measureMs, only: values.only });
    const inProcess = await runInProcess({ measureMs, only: values.only });
    const admission = admissionScenarios
      .filter(({ name }) => `admission, ${name}`.includes(values.only))
      .map((scenario) => measureAdmission(scenario, measureMs * decisionsPerMs));
    const redisScript = await measureRedisScript(
      redisScriptScenarios.filter(({ name }) => `script, ${name}`.includes(values.only)),
      measureMs,
    );
    const text =
      values.output === "json"
        ? JSON.stringify(
            { servers, gateways, comparisons, inProcess, admission, memory, redisScript },
            undefined,
            2,
          )
        : [
            formatServers(servers),
            formatGateways(gateways),
            formatComparisons(comparisons),
            formatInProcess(inProcess),
            formatAdmission(admission),
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

/** What runs instead of the rows, where that is asked for. @returns whether it was */
async function runInstead(values: InsteadValues): Promise<boolean> {
  if (values.simulation !== undefined) {
    await simulate(Number(values.simulation), Number(values.first));
  } else if (values.fuzz !== undefined) {
    await fuzz(Number(values.fuzz), Number(values.first));
  } else if (values.laws !== undefined) {
    process.stdout.write(`${tellLaws(Number(values.laws))}\n`);
  } else if (values.queueing !== undefined) {
    queueing(Number(values.queueing));
  } else if (values.fleet !== undefined) {
    fleets(Number(values.fleet), Number(values.first));
  } else if (values.overload !== undefined) {
    await overload(Number(values.overload) * 1_000);
  } else return false;
  return true;
}

/** Node writes a profile when a process ends. */
function profileOptions(directory: string | undefined): readonly string[] {
  return directory === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${resolve(directory)}`];
}

async function simulate(count: number, first: number): Promise<void> {
  if (!(count >= 1 && first >= 0)) throw new Error("--simulation and --first take whole numbers");
  const failure = await runSeeds({ first, count });
  process.stdout.write(failure === undefined ? "No seed failed.\n" : `${failure}\n`);
  if (failure !== undefined) process.exitCode = 1;
}

async function fuzz(count: number, first: number): Promise<void> {
  if (!(count >= 1 && first >= 0)) throw new Error("--fuzz and --first take whole numbers");
  const failure = await runFuzz({ first, count });
  process.stdout.write(failure === undefined ? "No input failed.\n" : `${failure}\n`);
  if (failure !== undefined) process.exitCode = 1;
}

function queueing(requestCount: number): void {
  if (!(requestCount >= 1)) throw new Error("--queueing takes a whole number");
  const { text, isNear } = tellQueueing(requestCount);
  process.stdout.write(`${text}\n`);
  if (!isNear) process.exitCode = 1;
}

async function overload(durationMs: number): Promise<void> {
  if (!(durationMs >= 5_000)) throw new Error("--overload takes seconds, at least 5");
  process.stdout.write(`${await tellOverload(durationMs)}\n`);
}

function fleets(count: number, first: number): void {
  if (!(count >= 1 && first >= 0)) throw new Error("--fleet and --first take whole numbers");
  const { text, isSound } = tellFleets({ first, count });
  process.stdout.write(`${text}\n`);
  if (!isSound) process.exitCode = 1;
}

/** Enough decisions that a row takes about a fifth of the time that a server's row takes. */
async function runInProcess({
  measureMs,
  only,
}: Pick<RowsOrder, "measureMs" | "only">): Promise<readonly InProcessRow[]> {
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
}: Pick<RowsOrder, "measureMs" | "only">): Promise<readonly MemoryRow[]> {
  if (!"in process, memory".includes(only)) return [];
  process.stderr.write("in process, memory ...\n");
  return [await measureMemory(10, measureMs * 200)];
}

await main();
