import { expectedTimeoutHeader } from "../../src/core/admission/deadline.js";
import type { Scenario } from "../../src/policy/scenario/parse-scenario.js";
import { meanOf } from "../../src/simulate/engine/distributions.js";
import { streamSeed } from "../../src/simulate/engine/seeded-random.js";
import { watchCrowding } from "./crowding.js";
import { Envoy } from "./envoy.js";
import { HeadgateProcess } from "./headgate-process.js";
import { summarizeLoad } from "./load-summary.js";
import { type LoadClass, runOpenLoop, unstalled } from "./open-loop-load.js";
import { type SaturableUpstream, startSaturableUpstream } from "./saturable-upstream.js";
import { runInput, scenarioInput } from "./scenario-run.js";
import type { Stage } from "./stage.js";

/** A scenario that the simulator runs, and a real Envoy with a real Headgate too. */
export interface EnvoyCase {
  readonly name: string;
  /** The blocks of the service beside its name and priorities; undefined: no policy. */
  readonly blocks?: string;
  /** Load in multiples of what the workers can serve. */
  readonly load: number;
  /** Further lines of the caller, and of the scenario. */
  readonly caller?: string;
  readonly events?: string;
}

/** How a scenario is run in both worlds. */
export interface EnvoyRun {
  readonly durationMs: number;
  /** The mean of exponential times of ten workers; the slower, the less a stall matters. */
  readonly meanServiceMs: number;
}

/** What came of a run, of the requests after the warm-up. */
export interface EnvoyFigures {
  /** Served in time, of what the workers could have served. */
  readonly goodputRatio: number;
  readonly p99Ms: number;
  /** Of all requests. */
  readonly refusedRatio: number;
  readonly attemptsPerRequest: number;
}

/** A scenario as it went in both worlds. */
export interface EnvoyComparison {
  readonly simulated: EnvoyFigures;
  readonly real: EnvoyFigures;
  /** How much the machine was busy with other work, and how much of the load left late. */
  readonly crowdedRatio: number;
  readonly lateRatio: number;
}

/**
 * Scenarios from an idle service to one that is flooded. Times are in multiples of the mean service
 * time: `6x` is 300 ms of workers that take 50 ms.
 */
export const envoyCases = [
  { name: "70 % load, admission", blocks: "admission: {}", load: 0.7 },
  { name: "3x load, a fixed limit", blocks: "admission: {maxInFlight: 15}", load: 3 },
  { name: "3x load, admission", blocks: "admission: {}", load: 3 },
  { name: "3x load, a queue", blocks: "admission: {queue: {size: 20, maxWait: 6x}}", load: 3 },
  {
    name: "3x load, half the workers lost",
    blocks: "admission: {}",
    load: 3,
    events: "events: [{at: HALF, workers: {ratio: 0.5}}]",
  },
  {
    name: "2x load, callers retry",
    blocks: "admission: {}",
    load: 2,
    caller: "retries: {attempts: 3, backoff: 2x}",
  },
  { name: "2x load, no policy", load: 2 },
] as const satisfies readonly EnvoyCase[];

const workerCount = 10;
const warmUpMs = 3_000;

function scenarioText({ load, caller = "", events = "" }: EnvoyCase, run: EnvoyRun): string {
  const { durationMs, meanServiceMs } = run;
  const perSecond = (load * workerCount * 1_000) / meanServiceMs;
  // It goes on until all answers are there.
  const text = `
duration: ${durationMs + 60 * meanServiceMs}ms
warmUp: ${warmUpMs}ms
fleet: {envoys: 1}
services:
  - {name: orders, workers: ${workerCount}, serviceTime: {exponential: 1x}}
callers:
  - name: web
    rate: {steps: [{at: 0s, rate: ${perSecond}}, {at: ${durationMs}ms, rate: 0}]}
    classes: {critical: 0.1, high: 0.2, low: 0.3}
    deadline: 20x
    ${caller}
${events.replace("HALF", `${durationMs / 2}ms`)}
`;
  return inTimes(text, meanServiceMs);
}

/** The text with multiples of the service time as durations. */
function inTimes(text: string, meanServiceMs: number): string {
  return text.replaceAll(/\b(\d+)x\b/g, (_, count) => `${Number(count) * meanServiceMs}ms`);
}

function policyText(blocks: string): string {
  return `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: agreement}
spec:
  services:
    - name: orders
      priority: {from: {header: x-request-priority, default: normal, trust: {anyone: true}}}
      ${blocks}
`;
}

/**
 * Runs a scenario in the simulator and with real programs. Both have the same arrivals, classes and
 * service times in the same order, so that what differs is not chance.
 */
export async function runBoth(
  stage: Stage,
  one: EnvoyCase,
  run: EnvoyRun,
): Promise<EnvoyComparison> {
  const { blocks } = one;
  const policy = blocks && inTimes(policyText(blocks), run.meanServiceMs);
  const input = scenarioInput(scenarioText(one, run), policy);
  const { summary, series } = await runInput(input);
  const { latencyMs, offered, ...total } = summary.total;
  const { durationMs } = run;
  const { scenario } = input;
  const { figures, ...machine } = await runReal(stage, { scenario, policy, durationMs });
  // The arrivals are the same, and so is what could have been served.
  const possible = series.get("orders.possible") ?? [];
  const counted = possible.slice(warmUpMs / 1_000, run.durationMs / 1_000);
  const possibleCount = counted.reduce((sum, count) => sum + count, 0);
  return {
    simulated: {
      goodputRatio: total.served / possibleCount,
      p99Ms: latencyMs?.p99 ?? Number.NaN,
      refusedRatio: total.refused / offered,
      attemptsPerRequest: total.attemptsPerRequest,
    },
    real: { ...figures, goodputRatio: figures.servedCount / possibleCount },
    ...machine,
  };
}

interface RealRun {
  readonly figures: Omit<EnvoyFigures, "goodputRatio"> & { readonly servedCount: number };
  readonly crowdedRatio: number;
  readonly lateRatio: number;
}

interface RealOrder {
  readonly scenario: Scenario;
  readonly policy: string | undefined;
  readonly durationMs: number;
}

async function runReal(
  stage: Stage,
  { scenario, policy, durationMs }: RealOrder,
): Promise<RealRun> {
  const { seed } = scenario;
  const [[caller], [service]] = [scenario.callers, scenario.services];
  if (caller?.rate.kind !== "points" || service === undefined) throw new Error("a plain scenario");
  const [upstream, headgate] = await Promise.all([
    startSaturableUpstream(stage, {
      workerCount,
      meanServiceMs: meanOf(service.serviceTime, new Map()),
      seed: streamSeed(seed, `service ${service.name}`),
      reportsLoad: false,
    }),
    policy === undefined ? undefined : HeadgateProcess.start(stage, { policy }),
  ]);
  const envoy = await Envoy.start(stage, {
    upstreamPort: upstream.port,
    headgatePorts: [headgate?.grpcPort ?? upstream.port],
    rateLimits: [],
    ...(headgate !== undefined && { extProc: extProcFor(service.name) }),
  });
  const crowded = watchCrowding();
  const { attempts = 1, backoff: backoffMs = 0 } = caller.retries ?? {};
  const load = runOpenLoop({
    ports: [envoy.port],
    perSecond: Math.max(...caller.rate.points.map(({ perSecond }) => perSecond)),
    durationMs,
    deadlineMs: caller.deadline,
    classes: classesOf(caller),
    callerCount: 1,
    seed: streamSeed(seed, `arrivals ${caller.name}`),
    classSeed: streamSeed(seed, `requests ${caller.name}`),
    retries: { attempts, backoffMs },
  });
  const changes = changeWorkers(upstream, scenario.events);
  const answers = await load;
  await changes;
  const whole = { capacityPerSecond: 1, workerCount: 1 };
  const span = { fromMs: scenario.warmUpMs, untilMs: durationMs, ...whole };
  const summary = summarizeLoad(answers, span);
  const counted = answers.filter(({ atMs }) => atMs >= span.fromMs);
  const attemptCount = counted.reduce((sum, one) => sum + one.attemptCount, 0);
  return {
    figures: {
      servedCount: counted.filter(({ status }) => status === 200).length,
      p99Ms: summarizeLoad(unstalled(answers), span).servedP99Ms,
      refusedRatio: summary.refusedCount / summary.requestCount,
      attemptsPerRequest: attemptCount / summary.requestCount,
    },
    crowdedRatio: crowded(),
    lateRatio: summary.lateRatio,
  };
}

function extProcFor(service: string) {
  return {
    grpc_service: {
      envoy_grpc: { cluster_name: "headgate" },
      initial_metadata: [{ key: "x-headgate-service", value: service }],
    },
    request_attributes: ["source.address"],
    // What Envoy refuses because the machine was busy says nothing about Headgate.
    message_timeout: "10s",
  };
}

/** In the order in which the simulator draws them: what is left of the shares is normal. */
function classesOf({ classes, deadline }: Scenario["callers"][number]): readonly LoadClass[] {
  const { critical, high, low } = classes;
  const shares = { critical, high, low, normal: 1 - critical - high - low };
  return Object.entries(shares).map(([name, share]) => {
    const stated = { [expectedTimeoutHeader]: String(deadline) };
    return { name, share, headers: { ...stated, "x-request-priority": name } };
  });
}

async function changeWorkers(
  upstream: SaturableUpstream,
  events: Scenario["events"],
): Promise<void> {
  for (const { at: atMs, workers } of events) {
    await new Promise((resolve) => setTimeout(resolve, atMs));
    await upstream.setWorkers(Math.round(workerCount * (workers?.ratio ?? 1)));
  }
}
