import { parseScenario } from "../../src/policy/scenario/parse-scenario.js";
import { type RequestFigures, runScenario } from "../../src/simulate/report/run-summary.js";
import { meanWait } from "./erlang-c.js";

/** A station whose behaviour a formula knows. */
export interface AgreementCase {
  readonly name: string;
  readonly workerCount: number;
  /** Arrivals in the time of one service. */
  readonly load: number;
  /** As a scenario writes it, with a mean of 100 ms, which is the unit of all others. */
  readonly serviceTime: string;
  /** Places behind the workers; undefined: no bound. */
  readonly queue?: number;
  readonly source: string;
  /** What is compared. */
  readonly figure: "latency" | "lostRatio";
  readonly expected: number;
}

const ten = { serverCount: 10, arrivalsPerSecond: 8, servedPerSecond: 1 };

/** Mean wait in M/D/c. Source: Cosmetatos, 1976. */
function meanWaitFixed(): number {
  const { serverCount: c, arrivalsPerSecond } = ten;
  const load = arrivalsPerSecond / c;
  const correction = ((1 - load) * (c - 1) * (Math.sqrt(4 + 5 * c) - 2)) / (16 * load * c);
  return (meanWait(ten) * (1 + correction)) / 2;
}

/** Mean wait in M/G/1, of times with a mean of 1. Source: Pollaczek and Khinchine. */
function meanWaitSingle(load: number, squaredVariation: number): number {
  return (load * (1 + squaredVariation)) / (2 * (1 - load));
}

/** The share that finds no place in M/M/c/K, and the mean latency of the others. */
function bounded(c: number, places: number, load: number): { lost: number; latency: number } {
  const weights = [1];
  for (let n = 1; n <= c + places; n += 1) {
    weights.push(((weights[n - 1] ?? 0) * load) / Math.min(n, c));
  }
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const lost = (weights.at(-1) ?? 0) / sum;
  const present = weights.reduce((total, weight, n) => total + (n * weight) / sum, 0);
  return { lost, latency: present / (load * (1 - lost)) };
}

const small = bounded(10, 5, 9.5);

/** Stations and what formulas say of them. */
export const agreementCases: readonly AgreementCase[] = [
  {
    name: "M/M/1, 60 %",
    workerCount: 1,
    load: 0.6,
    serviceTime: "{exponential: 100ms}",
    source: "Erlang",
    figure: "latency",
    expected: 1 / 0.4,
  },
  {
    name: "M/M/10, 80 %",
    workerCount: 10,
    load: 8,
    serviceTime: "{exponential: 100ms}",
    source: "Erlang's C",
    figure: "latency",
    expected: 1 + meanWait(ten),
  },
  {
    name: "M/D/10, 80 %",
    workerCount: 10,
    load: 8,
    serviceTime: "{fixed: 100ms}",
    source: "Cosmetatos",
    figure: "latency",
    expected: 1 + meanWaitFixed(),
  },
  {
    name: "M/G/10, 80 %, variation 0.25",
    workerCount: 10,
    load: 8,
    serviceTime: "{bimodal: {fast: 50ms, slow: 150ms, slowRatio: 0.5}}",
    source: "Page: between M/D/c and M/M/c",
    figure: "latency",
    expected: 1 + 0.25 * meanWait(ten) + 0.75 * meanWaitFixed(),
  },
  {
    name: "M/G/1, 60 %, variation 0.25",
    workerCount: 1,
    load: 0.6,
    serviceTime: "{bimodal: {fast: 50ms, slow: 150ms, slowRatio: 0.5}}",
    source: "Pollaczek and Khinchine",
    figure: "latency",
    expected: 1 + meanWaitSingle(0.6, 0.25),
  },
  {
    name: "M/M/10/15, 95 %, lost",
    workerCount: 10,
    load: 9.5,
    serviceTime: "{exponential: 100ms}",
    queue: 5,
    source: "birth and death",
    figure: "lostRatio",
    expected: small.lost,
  },
  {
    name: "M/M/10/15, 95 %, latency",
    workerCount: 10,
    load: 9.5,
    serviceTime: "{exponential: 100ms}",
    queue: 5,
    source: "birth and death",
    figure: "latency",
    expected: small.latency,
  },
];

/** Runs a station for so many requests, and reads what is compared. */
export async function runAgreement(one: AgreementCase, requestCount: number): Promise<number> {
  const perSecond = 10 * one.load;
  const seconds = Math.min(86_000, Math.ceil(requestCount / perSecond));
  const queue = one.queue === undefined ? "" : `, queue: ${one.queue}`;
  const text = `
duration: ${seconds}s
warmUp: 20s
services:
  - {name: station, workers: ${one.workerCount}, serviceTime: ${one.serviceTime}${queue}}
callers:
  - {name: poisson, rate: ${perSecond}, deadline: 1h}
`;
  const figures = await figuresOf(text);
  if (one.figure === "lostRatio") return figures.failed / figures.offered;
  return (figures.latencyMs?.mean ?? Number.NaN) / 100;
}

async function figuresOf(text: string): Promise<RequestFigures> {
  const parsed = parseScenario({ file: "agreement.yaml", text });
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  const { scenario } = parsed;
  const parts = { scenario, policy: undefined, traces: new Map(), digest: (one: string) => one };
  const control = { goesOn: async () => true };
  return (await runScenario(parts, { label: "", control })).summary.total;
}
