import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { History } from "../../src/app/admin/history.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { type Policy, PolicyBuilder } from "../../src/policy/policy.js";
import { startAdminApp } from "../support/admin.js";
import type { ChildProgram } from "../support/child-program.js";
import { Stage } from "../support/stage.js";
import { layOut } from "./report.js";

const consoleCount = 10;
const ruleCount = 1_000;
const serviceCount = 20;

/** Until clients run and all of it is compiled, in milliseconds. */
const startMs = 6_000;

/** Rounds of each side in turn: what disturbs the machine disturbs both. */
const roundCount = 5;

/** What callers ask meanwhile, so that there is something to see. */
const decisionsPerSecond = 50;

/** Who looks, and what that is. */
const onlookers = [
  { kind: "overview", what: "consoles with the overview" },
  { kind: "tail", what: "consoles with the live tail" },
  { kind: "programs", what: "programs that ask what the overview asks, each for itself" },
] as const;

/** The most of a decision's time that ten open consoles may cost. */
const shareMax = 0.01;

/** What open consoles cost a replica, and what it keeps for them. */
export async function tellConsole(seconds: number): Promise<string> {
  const kept = [history(ruleCount, serviceCount), history(10_000, 100)];
  const figures = await measureConsoles(seconds);
  const [idle = 0, ...others] = [...figures.values()];
  const shares = others.map((ms) => (ms - idle) / 1_000);
  return [
    "CPU time of the thread that decides in a second, in ms (medians of " +
      `${roundCount} rounds of ${seconds} s). At most ${100 * shareMax} % is for consoles:`,
    layOut([
      ["ms", "for them", `${consoleCount} of`],
      [idle.toFixed(1), "", "nobody"],
      ...onlookers.map(({ what }, i) => {
        const share = shares[i] ?? 0;
        return [(others[i] ?? 0).toFixed(1), `${(100 * share).toFixed(2)} %`, what];
      }),
    ]),
    "",
    layOut([
      ["kept of", "KB of numbers", "KB in all", "us for a look"],
      ...kept.map(({ name, ...figures }) => [
        name,
        ...Object.values(figures).map((figure) => Math.round(figure).toLocaleString("en-US")),
      ]),
    ]),
  ].join("\n");
}

function policyText(rules: number, services: number): string {
  const descriptors = Array.from(
    { length: rules },
    (_, i) => `        - {key: k${i}, rate_limit: {unit: minute, requests_per_unit: 100}}`,
  );
  const named = Array.from(
    { length: services },
    (_, i) => `    - {name: s${i}, hosts: [s${i}.example], admission: {maxInFlight: 10}}`,
  );
  return [
    "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: bench}\nspec:",
    "  rateLimits:\n    - domain: bench\n      descriptors:",
    ...descriptors,
    "  services:",
    ...named,
  ].join("\n");
}

function readPolicy(text: string): Policy {
  const parsed = parsePolicy([{ file: "bench.yaml", text }]);
  if (parsed.kind !== "policy") throw new Error("the policy is wrong");
  const builder = new PolicyBuilder("bench");
  builder.addDomains(parsed.domains);
  builder.add(parsed.rules);
  builder.addServices(parsed.services);
  return builder.finish();
}

/** All rules asked about, as long as is kept. */
function history(rules: number, services: number) {
  const policy = readPolicy(policyText(rules, services));
  const counters = new DecisionCounters();
  const own = counters.forPolicy(policy);
  let epochUs = 1_700_000_000_000_000;
  let look = (): void => {};
  const clock = {
    epochUs: () => epochUs,
    schedule: (_delayMs: number, callback: () => void) => {
      look = callback;
      return () => {};
    },
  };
  const heapBefore = heapBytes();
  const kept = new History({
    clock,
    counters,
    policies: { current: () => policy },
    admission: { services: () => [] },
    levelsOf: ({ name }) => ({ ...level, name }),
    isDegraded: () => false,
    envoyCount: () => 10,
    rooms: undefined,
  });
  let spentUs = 0;
  const lookCount = 300;
  for (let second = 0; second < lookCount; second += 1) {
    for (const { hits } of own) hits.total += 3;
    epochUs += 1_000_000;
    const before = process.cpuUsage();
    look();
    spentUs += process.cpuUsage(before).user;
  }
  const heap = heapBytes() - heapBefore;
  return {
    name: `${rules.toLocaleString("en-US")} rules, ${services} services`,
    numbersKb: kept.byteCount / 1_024,
    allKb: heap / 1_024,
    lookUs: spentUs / lookCount,
  };
}

const level = {
  law: "gradient",
  concurrencyLimit: 10,
  inFlight: 1,
  rttMs: 1,
  minRttMs: 1,
  gradient: 1,
  gate: undefined,
  waitingCount: 0,
  overflowPerSecond: 0,
  reservedHigh: 0,
} as const;

function heapBytes(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** CPU time of the thread that decides, in milliseconds a second: first without onlookers. */
async function measureConsoles(seconds: number): Promise<ReadonlyMap<string, number>> {
  const stage = new Stage();
  await stage.open();
  try {
    const policy = policyText(ruleCount, serviceCount);
    const { app, port } = await startAdminApp(stage, policy, {
      HEADGATE_ADMIN_CALLS_PER_SECOND: "1000",
    });
    const httpPort = String(app.httpAddress?.port);
    startClients(stage, ["decide", httpPort, String(decisionsPerSecond), String(ruleCount)]);
    const kinds = ["nobody", ...onlookers.map(({ kind }) => kind)];
    const figures = new Map(kinds.map((kind): [string, number[]] => [kind, []]));
    await pause(startMs);
    for (let round = 0; round < roundCount; round += 1) {
      for (const [kind, taken] of figures) {
        const args = [kind, String(port), String(consoleCount)];
        const clients = kind === "nobody" ? undefined : startClients(stage, args);
        await pause(startMs);
        taken.push(await cpuMsPerSecond(seconds));
        await clients?.kill();
      }
    }
    return new Map([...figures].map(([kind, taken]) => [kind, median(taken)]));
  } finally {
    await stage.close();
  }
}

/** Callers and consoles have a process of their own, so that their work is not counted. */
function startClients(stage: Stage, args: readonly string[]): ChildProgram {
  const script = fileURLToPath(new URL("./console-clients.ts", import.meta.url));
  const file = process.execPath;
  return stage.spawn({ name: args[0] ?? "", file, args: ["--import", "tsx", script, ...args] });
}

async function cpuMsPerSecond(seconds: number): Promise<number> {
  const beforeMs = mainThreadMs();
  await pause(seconds * 1_000);
  return (mainThreadMs() - beforeMs) / seconds;
}

/** CPU time of this thread: of other work on the machine it knows nothing. Source: proc(5). */
function mainThreadMs(): number {
  const stat = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "latin1");
  return Number(stat.split(" ")[0]) / 1_000_000;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function median(figures: readonly number[]): number {
  return figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 2)] ?? 0;
}
