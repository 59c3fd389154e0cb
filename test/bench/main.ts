import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { keepNewObjectsYoung } from "../../src/app/base/v8-flags.js";
import { admissionScenarios, measureAdmission } from "./admission.js";
import { tellBudgetScript } from "./budget-script.js";
import { tellBudgets } from "./budgets.js";
import { tellClientLibrary } from "./client-library.js";
import { tellConsole } from "./console.js";
import { promisedFleet, tellControlPort } from "./control-port.js";
import { tellDecoders } from "./decoders.js";
import { tellFeedback } from "./feedback.js";
import { tellFleets } from "./fleet-loop.js";
import { runFuzz } from "./fuzz.js";
import { measureGateways } from "./gateway-rows.js";
import { tellGenerate } from "./generate.js";
import { recordGoodput, tellGoodput } from "./goodput.js";
import { type InProcessRow, inProcessScenarios, measureWithRedis } from "./in-process.js";
import { type InTurn, measureInTurn } from "./in-turn.js";
import { tellLaws } from "./laws.js";
import { tellLayers } from "./layers.js";
import { type MemoryRow, measureMemory } from "./memory-row.js";
import { type RepeatedOrder, tellOverload, tellRepeatedOverload } from "./overload.js";
import { measureOverrides, type OverrideRow } from "./override-rows.js";
import { proofGroups } from "./proof.js";
import { prove } from "./prove.js";
import { tellQueueing } from "./queueing.js";
import { tellQuotas } from "./quota.js";
import { measureRedisScript, redisScriptScenarios } from "./redis-script.js";
import { tellReplay } from "./replay.js";
import {
  formatAdmission,
  formatComparisons,
  formatGateways,
  formatInProcess,
  formatMemory,
  formatOverrides,
  formatRedisScript,
  formatServers,
  formatWatched,
} from "./report.js";
import { measureRlqs } from "./rlqs.js";
import { tellRooms } from "./rooms.js";
import { measureServers, type RowsOrder } from "./server-rows.js";
import { tellSimulate } from "./simulate.js";
import { tellSimulateEnvoy } from "./simulate-envoy.js";
import { runSeeds } from "./simulation.js";
import { compare, compareLimits } from "./targets.js";
import { tellUsage } from "./usage.js";
import { measureWatched } from "./watched.js";

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
  --goodput N     instead of all this: N worlds of the goodput matrix next to their best static
                  limits, which are searched; "record" writes down those of the tests
  --arrivals N    requests of a world of --goodput at most (default: 200000; the tests' are 20000)
  --simulate N    instead of all this: the simulator against queueing theory with N requests each,
                  and its speed
  --simulate-envoy N
                  instead of all this: the simulator against a real Envoy with a real Headgate, in
                  runs of N seconds (at least 8); --only takes those with this text
  --queueing N    instead of all this: N requests against Erlang's formula, and queues in overload
  --overload N    instead of all this: N seconds each of an upstream under 3 and 10 times its load,
                  by what protects it, with pictures in test-output
  --overload M... --repeat N    the same at M times its load, N runs of --seconds (at least 10) by
                  each protection that is told no number, and at the first M while half of it
                  goes; the worst of them next to targets
  --feedback N    instead of all this: Envoys before a service that loses half of itself, N seconds
                  after it, by what sets their limits; pictures in test-output/
  --fleet N       instead of all this: N seeds of the fleet's loop, big fleets, and its cost
  --control N [ENVOYS SERVICES]    instead of all this: N seconds of a control port with 1,000
                  Envoys of 20 services, or so many
  --console N     instead of all this: what ten open consoles cost a replica, in rounds of N
                  seconds, and what it keeps for them
  --client N      instead of all this: what the library of callers adds to a call, next to other
                  libraries, in turns of N thousand calls
  --budgets N     instead of all this: what calls cost that budgets reserve and settle, next to
                  decisions: the script in rows of N seconds, then 20,000 N calls through admission
  --rlqs N        instead of all this: N seconds of an Envoy that asks, and of one with quotas
  --rooms N       instead of all this: what waiting rooms cost with a million visitors, in rows of
                  N seconds
  --decoders      instead of all this: what the worst message of each decoder costs; fails above
                  5 ms of CPU, or ten times its bytes in memory
  --usage N       instead of all this: what reading the usage of calls from N megabytes of responses
                  costs, next to JSON.parse
  --light --limits --wide
                  instead of all this, one of them or several: rows with targets, next to the same
                  rows of the last release. Start, end and memory of a process; several limits of a
                  request, next to the servers whose binaries HEADGATE_BENCH_RATELIMIT,
                  HEADGATE_BENCH_LIMITADOR and HEADGATE_BENCH_THROTTLECRAB name; fleets of Envoys
                  on the control port, the loop, quotas, regions. --only takes parts with this
                  text, such as "next to". A missed target fails nothing; a picture of the growth
                  in test-output/
  --record        the rows become those of the last release, and the picture that of the docs
  --replay N      instead of all this: headgate replay over logs of N lines, in each format
  --generate N    instead of all this: headgate generate for N services, for each target
  --quotas N      instead of all this: N seeds of quotas in foul weather, big fleets, and their cost
  --layers N      instead of all this: the example of three layers, N seconds (at least 2) for each
                  combination under each condition; --only takes those with this text, such as
                  "all three"; a picture in test-output/
  --first SEED    the first seed of --simulation, --fuzz, --fleet, --goodput and --quotas
  -h, --help      this text`;

/** Options of what runs instead of the rows, as texts. */
interface InsteadValues {
  readonly simulation?: string;
  readonly fuzz?: string;
  readonly laws?: string;
  readonly layers?: string;
  readonly goodput?: string;
  readonly simulate?: string;
  readonly "simulate-envoy"?: string;
  readonly queueing?: string;
  readonly feedback?: string;
  readonly fleet?: string;
  readonly control?: string;
  readonly quotas?: string;
  readonly overload?: string;
  readonly repeat?: string;
  readonly rlqs?: string;
  readonly console?: string;
  readonly client?: string;
  readonly replay?: string;
  readonly generate?: string;
  readonly rooms?: string;
  readonly budgets?: string;
  readonly usage?: string;
  readonly decoders?: boolean;
  readonly light?: boolean;
  readonly limits?: boolean;
  readonly wide?: boolean;
  readonly record?: boolean;
  readonly output: string;
  readonly first: string;
  readonly arrivals: string;
  readonly seconds: string;
  readonly only: string;
  readonly profile?: string;
}

/** All options, as Node reads them. */
const options = {
  seconds: { type: "string", default: "5" },
  only: { type: "string", default: "" },
  output: { type: "string", short: "o", default: "table" },
  profile: { type: "string" },
  simulation: { type: "string" },
  fuzz: { type: "string" },
  laws: { type: "string" },
  layers: { type: "string" },
  goodput: { type: "string" },
  simulate: { type: "string" },
  "simulate-envoy": { type: "string" },
  queueing: { type: "string" },
  feedback: { type: "string" },
  fleet: { type: "string" },
  control: { type: "string" },
  quotas: { type: "string" },
  overload: { type: "string" },
  repeat: { type: "string" },
  rlqs: { type: "string" },
  console: { type: "string" },
  client: { type: "string" },
  replay: { type: "string" },
  generate: { type: "string" },
  rooms: { type: "string" },
  budgets: { type: "string" },
  usage: { type: "string" },
  decoders: { type: "boolean" },
  light: { type: "boolean" },
  limits: { type: "boolean" },
  wide: { type: "boolean" },
  record: { type: "boolean" },
  first: { type: "string", default: "1" },
  arrivals: { type: "string", default: "200000" },
  help: { type: "boolean", short: "h", default: false },
} as const;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options,
  });
  if (values.help) {
    process.stdout.write(`${help}\n`);
    return;
  }
  if (await runInstead(values, positionals)) return;
  const measureMs = Number(values.seconds) * 1_000;
  if (!(measureMs >= 500)) throw new Error("--seconds must be a number of at least 0.5");
  // As the service does.
  keepNewObjectsYoung();
  const directory = await mkdtemp(join(tmpdir(), "headgate-bench-"));
  try {
    const nodeOptions = profileOptions(values.profile);
    const order = { directory, measureMs, only: values.only, nodeOptions };
    const servers = await measureServers(order);
    const gateways = await measureGateways(order);
    // First, while this process holds nothing else.
    const memory = await runMemory({ measureMs, only: values.only });
    const { rows: inProcess, comparisons: inTurn } = await runInProcess({
      measureMs,
      only: values.only,
    });
    const overrides = await runOverrides(values.only);
    const watched = await measureWatched(measureMs * decisionsPerMs * 2, values.only);
    const admission = runAdmission({ measureMs, only: values.only });
    const redisScript = await measureRedisScript(
      redisScriptScenarios.filter(({ name }) => `script, ${name}`.includes(values.only)),
      measureMs,
    );
    const comparisons = [
      ...compare({ servers, gateways }),
      ...inTurn,
      ...compareLimits(redisScript),
    ];
    const rows = { servers, gateways, comparisons, inProcess, overrides, watched, admission };
    const all = { ...rows, memory, redisScript };
    const text = values.output === "json" ? JSON.stringify(all, undefined, 2) : formatAll(all);
    process.stdout.write(`${text}\n`);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

interface AllRows {
  readonly servers: Parameters<typeof formatServers>[0];
  readonly gateways: Parameters<typeof formatGateways>[0];
  readonly comparisons: Parameters<typeof formatComparisons>[0];
  readonly inProcess: readonly InProcessRow[];
  readonly overrides: readonly OverrideRow[];
  readonly watched: Parameters<typeof formatWatched>[0];
  readonly admission: Parameters<typeof formatAdmission>[0];
  readonly memory: readonly MemoryRow[];
  readonly redisScript: Parameters<typeof formatRedisScript>[0];
}

/** The rows as tables; what was not measured has none. */
function formatAll(rows: AllRows): string {
  return [
    formatServers(rows.servers),
    formatGateways(rows.gateways),
    formatComparisons(rows.comparisons),
    formatInProcess(rows.inProcess),
    ...rows.overrides.map(formatOverrides),
    formatWatched(rows.watched),
    formatAdmission(rows.admission),
    ...rows.memory.map(formatMemory),
    formatRedisScript(rows.redisScript),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** What runs instead of the rows, where that is asked for. @returns whether it was */
async function runInstead(values: InsteadValues, positionals: readonly string[]): Promise<boolean> {
  const takesMore = values.repeat !== undefined || values.control !== undefined;
  if (positionals.length > 0 && !takesMore) {
    throw new Error(`nothing is known of ${positionals.join(" ")}`);
  }
  if (values.simulation !== undefined) {
    await simulate(Number(values.simulation), Number(values.first));
  } else if (values.fuzz !== undefined) {
    await fuzz(Number(values.fuzz), Number(values.first));
  } else if (values.laws !== undefined) {
    process.stdout.write(`${tellLaws(Number(values.laws))}\n`);
  } else if (values.layers !== undefined) {
    await layers(Number(values.layers) * 1_000, values.only);
  } else if (values.goodput !== undefined) {
    await goodput(values.goodput, Number(values.first), Number(values.arrivals));
  } else if (values.simulate !== undefined) {
    await agreement(Number(values.simulate));
  } else if (values["simulate-envoy"] !== undefined) {
    await envoyAgreement(Number(values["simulate-envoy"]) * 1_000, values.only);
  } else if (values.queueing !== undefined) {
    queueing(Number(values.queueing));
  } else if (values.feedback !== undefined) {
    await feedback(Number(values.feedback) * 1_000);
  } else if (values.fleet !== undefined) {
    fleets(Number(values.fleet), Number(values.first));
  } else if (values.control !== undefined) {
    const nodeOptions = profileOptions(values.profile);
    await control(Number(values.control) * 1_000, { nodeOptions, fleet: positionals.map(Number) });
  } else if (values.quotas !== undefined) {
    quotas(Number(values.quotas), Number(values.first));
  } else if (values.overload !== undefined && values.repeat !== undefined) {
    await repeatedOverload({
      multiples: [values.overload, ...positionals].map(Number),
      repeatCount: Number(values.repeat),
      durationMs: Math.max(10, Number(values.seconds)) * 1_000,
    });
  } else if (values.overload !== undefined) {
    await overload(Number(values.overload) * 1_000);
  } else if (values.rlqs !== undefined) {
    await rlqs(Number(values.rlqs) * 1_000);
  } else if (values.console !== undefined) {
    process.stdout.write(`${await tellConsole(Number(values.console))}\n`);
  } else if (values.client !== undefined) {
    process.stdout.write(`${await tellClientLibrary(Number(values.client))}\n`);
  } else if (values.replay !== undefined) {
    await replay(Number(values.replay));
  } else if (values.generate !== undefined) {
    process.stdout.write(`${tellGenerate(Number(values.generate))}\n`);
  } else if (values.rooms !== undefined) {
    await rooms(Number(values.rooms) * 1_000);
  } else if (values.budgets !== undefined) {
    await budgets(Number(values.budgets) * 1_000);
  } else if (values.usage !== undefined) {
    process.stdout.write(`${tellUsage(Number(values.usage))}\n`);
  } else if (proofGroups.some((group) => values[group])) {
    await proof(values);
  } else if (values.decoders) {
    const { text, isWithin } = await tellDecoders(values.only);
    process.stdout.write(`${text}\n`);
    if (!isWithin) process.exitCode = 1;
  } else return false;
  return true;
}

async function proof(values: InsteadValues): Promise<void> {
  const measureMs = Number(values.seconds) * 1_000;
  if (!(measureMs >= 500)) throw new Error("--seconds must be a number of at least 0.5");
  const groups = proofGroups.filter((group) => values[group]);
  const { only, output, record: isRecorded = false } = values;
  // As the service does.
  keepNewObjectsYoung();
  process.stdout.write(`${await prove({ groups, measureMs, only, output, isRecorded })}\n`);
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

async function goodput(text: string, first: number, arrivalCountMax: number): Promise<void> {
  if (text === "record") return recordGoodput();
  const count = Number(text);
  if (!(count >= 1 && first >= 0 && arrivalCountMax >= 1))
    throw new Error("--goodput, --first and --arrivals take whole numbers");
  process.stdout.write(`${tellGoodput({ first, count, arrivalCountMax })}\n`);
}

async function agreement(requestCount: number): Promise<void> {
  if (!(requestCount >= 1)) throw new Error("--simulate takes a whole number");
  const { text, isNear } = await tellSimulate(requestCount);
  process.stdout.write(`${text}\n`);
  if (isNear) return;
  process.stderr.write("further from the formulas than it may be\n");
  process.exitCode = 1;
}

async function envoyAgreement(durationMs: number, only: string): Promise<void> {
  if (!(durationMs >= 8_000)) throw new Error("--simulate-envoy takes seconds, at least 8");
  const { text, isNear } = await tellSimulateEnvoy(durationMs, only);
  process.stdout.write(`${text}\n`);
  if (isNear) return;
  process.stderr.write("further from the real programs than it may be\n");
  process.exitCode = 1;
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

async function repeatedOverload(order: RepeatedOrder): Promise<void> {
  const { multiples, repeatCount } = order;
  if (!(repeatCount >= 1 && multiples.every((multiple) => multiple > 0))) {
    throw new Error("--overload takes multiples of the capacity, and --repeat a whole number");
  }
  process.stdout.write(`${await tellRepeatedOverload(order)}\n`);
}

async function layers(measureMs: number, only: string): Promise<void> {
  if (!(measureMs >= 2_000)) throw new Error("--layers takes seconds, at least 2");
  process.stdout.write(`${await tellLayers(measureMs, only)}\n`);
}

async function rooms(measureMs: number): Promise<void> {
  if (!(measureMs >= 500)) throw new Error("--rooms takes seconds, at least 0.5");
  process.stdout.write(`${await tellRooms(measureMs)}\n`);
}

async function budgets(measureMs: number): Promise<void> {
  if (!(measureMs >= 500)) throw new Error("--budgets takes seconds, at least 0.5");
  process.stdout.write(`${await tellBudgetScript(measureMs)}\n\n`);
  process.stdout.write(`${await tellBudgets(20 * measureMs)}\n`);
}

async function rlqs(measureMs: number): Promise<void> {
  if (!(measureMs >= 3_000)) throw new Error("--rlqs takes seconds, at least 3");
  process.stdout.write(`${await measureRlqs(measureMs)}\n`);
}

async function replay(lineCount: number): Promise<void> {
  if (!(lineCount >= 1)) throw new Error("--replay takes a whole number");
  process.stdout.write(`${await tellReplay(lineCount)}\n`);
}

async function feedback(afterMs: number): Promise<void> {
  if (!(afterMs >= 10_000)) throw new Error("--feedback takes seconds, at least 10");
  process.stdout.write(`${await tellFeedback(afterMs)}\n`);
}

function fleets(count: number, first: number): void {
  if (!(count >= 1 && first >= 0)) throw new Error("--fleet and --first take whole numbers");
  const { text, isSound } = tellFleets({ first, count });
  process.stdout.write(`${text}\n`);
  if (!isSound) process.exitCode = 1;
}

/** @param fleet Envoys and services. Default the promised ones */
async function control(
  measureMs: number,
  { nodeOptions, fleet }: { nodeOptions: readonly string[]; fleet: readonly number[] },
): Promise<void> {
  if (!(measureMs >= 1_000)) throw new Error("--control takes seconds, at least 1");
  const [nodeCount = promisedFleet.nodeCount, serviceCount = promisedFleet.serviceCount] = fleet;
  if (!(nodeCount >= 1 && serviceCount >= 1)) throw new Error("ENVOYS and SERVICES are numbers");
  const order = { measureMs, nodeOptions, nodeCount, serviceCount };
  const { text, isSound } = await tellControlPort(order);
  process.stdout.write(`${text}\n`);
  if (!isSound) process.exitCode = 1;
}

function quotas(count: number, first: number): void {
  if (!(count >= 1 && first >= 0)) throw new Error("--quotas and --first take whole numbers");
  const { text, isSound } = tellQuotas({ first, count });
  process.stdout.write(`${text}\n`);
  if (!isSound) process.exitCode = 1;
}

/** Enough decisions that a row takes about a fifth of the time that a server's row takes. */
async function runInProcess({
  measureMs,
  only,
}: Pick<RowsOrder, "measureMs" | "only">): Promise<InTurn> {
  const wanted = inProcessScenarios.filter(({ name }) => `in process, ${name}`.includes(only));
  const decisionCount = measureMs * decisionsPerMs;
  const embedded = wanted.filter(({ store }) => store !== "redis");
  if (embedded.length > 0) process.stderr.write("in process, embedded store, in turn ...\n");
  const { rows: inTurn, comparisons } = await measureInTurn(embedded, decisionCount);
  const rows: InProcessRow[] = [...inTurn];
  for (const scenario of wanted.filter(({ store }) => store === "redis")) {
    process.stderr.write(`in process, ${scenario.name} ... `);
    const row = await measureWithRedis(scenario, decisionCount);
    process.stderr.write(`${row.cpuUsPerDecision.toFixed(2)} us\n`);
    rows.push(row);
  }
  process.stderr.write(`${cpus().length} cores, Node ${process.version}\n\n`);
  return { rows, comparisons };
}

const decisionsPerMs = 50;

function runAdmission({
  measureMs,
  only,
}: Pick<RowsOrder, "measureMs" | "only">): readonly ReturnType<typeof measureAdmission>[] {
  return admissionScenarios
    .filter(({ name }) => `admission, ${name}`.includes(only))
    .map((scenario) => measureAdmission(scenario, measureMs * decisionsPerMs));
}

async function runOverrides(only: string): Promise<readonly OverrideRow[]> {
  if (!"in process, overrides".includes(only)) return [];
  process.stderr.write("in process, overrides ...\n");
  return [await measureOverrides()];
}

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
