import { watchCrowding } from "./crowding.js";
import type { Envoy } from "./envoy.js";
import { httpFilter } from "./envoy-config.js";
import {
  breakers,
  feedbackLoad,
  startFeedbackEnvoy,
  startFeedbackFleet,
  startFeedbackUpstream,
} from "./feedback-run.js";
import { ratesOver } from "./load-summary.js";
import { type LoadAnswer, unstalled } from "./open-loop-load.js";
import { sampleDuring } from "./sample-during.js";
import type { SaturableUpstream } from "./saturable-upstream.js";
import type { Stage } from "./stage.js";
import { plotSvg } from "./svg-plot.js";
import { waitFor } from "./wait.js";

/** What stands before an upstream that loses half of its workers. */
export type HalvedProtection = "headgate" | "staticBreakers" | "adaptiveConcurrency";

/** A run in which that happens. */
export interface HalvedOrder {
  readonly protection: HalvedProtection;
  /** Requests that come, in multiples of what the upstream can serve at first. */
  readonly loadRatio: number;
  /** When half of the workers go, and the end. */
  readonly halvedMs: number;
  readonly durationMs: number;
}

/** What came of it. */
export interface HalvedResult {
  readonly order: HalvedOrder;
  /** Served in time, as a share of what was possible, in the five seconds before the loss. */
  readonly goodputBefore: number;
  /** The same from five seconds after it on. */
  readonly goodputAfter: number;
  /** The same in the five seconds between. */
  readonly goodputBetween: number;
  /** In work at the upstream, its queue included, in the mean from five seconds after it on. */
  readonly inFlightAfter: number;
  /** When that had come down to twice the workers for a second; undefined: it did not. */
  readonly followedMs: number | undefined;
  /** Without an answer in time, from five seconds after it on, where the machine did not stall. */
  readonly unansweredCount: number;
  /** Share of the time in which this machine had more work than cores. */
  readonly crowdedRatio: number;
  /** Latency of the served from five seconds after it on, in the mean. */
  readonly servedMs: number;
  readonly svg: string;
}

type Points = readonly (readonly [number, number])[];

/** Workers of 50 ms at first. */
export const halvedWorkerCount = 20;
const perWorkerSecond = 20;

/** In which whoever protects it may find out. */
const followMsMax = 5_000;

/** Envoys between callers and upstream. */
const envoyCount = 2;

/** Runs it with programs of their own for everything. */
export async function runHalved(stage: Stage, order: HalvedOrder): Promise<HalvedResult> {
  const { envoys, upstream } = await start(stage, order.protection);
  const capacity = halvedWorkerCount * perWorkerSecond;
  const { halvedMs, durationMs } = order;
  const load = feedbackLoad(envoys, { perSecond: capacity * order.loadRatio, durationMs });
  // Its program takes seconds to start where the machine has others to run.
  await waitFor("the load has begun", async () => (await upstream.stats()).arrivedCount > 0);
  const startMs = performance.now();
  const crowded = watchCrowding();
  const inFlight = sampleDuring(load, async () => (await upstream.stats()).inFlightCount);
  await waitFor("it is time", () => performance.now() - startMs >= halvedMs, {
    withinMs: durationMs,
  });
  await upstream.setWorkers(halvedWorkerCount / 2);
  const taken = { answers: await load, inFlight: await inFlight };
  return { ...resultOf(order, taken), crowdedRatio: crowded() };
}

async function start(
  stage: Stage,
  protection: HalvedProtection,
): Promise<{ readonly envoys: readonly Envoy[]; readonly upstream: SaturableUpstream }> {
  if (protection === "headgate") {
    return startFeedbackFleet(stage, { envoyCount, workerCount: halvedWorkerCount });
  }
  const upstream = await startFeedbackUpstream(stage, halvedWorkerCount);
  const envoys: Envoy[] = [];
  for (let i = 0; i < envoyCount; i += 1) {
    // About what suits the upstream while it is whole: what somebody would write down.
    const most = protection === "staticBreakers" ? halvedWorkerCount : 10_000;
    const filters = protection === "adaptiveConcurrency" ? [adaptiveConcurrency] : [];
    const given = { upstreamCluster: breakers(most), filtersBefore: filters };
    envoys.push(await startFeedbackEnvoy(stage, upstream, given));
  }
  return { envoys, upstream };
}

const adaptiveConcurrency = httpFilter("adaptive_concurrency", "AdaptiveConcurrency", {
  gradient_controller_config: {
    sample_aggregate_percentile: { value: 90 },
    concurrency_limit_params: {
      max_concurrency_limit: 1_000,
      concurrency_update_interval: "0.1s",
    },
    min_rtt_calc_params: { interval: "60s", request_count: 50 },
  },
});

function resultOf(
  order: HalvedOrder,
  { answers, inFlight }: { readonly answers: readonly LoadAnswer[]; readonly inFlight: Points },
): Omit<HalvedResult, "crowdedRatio"> {
  const { loadRatio, halvedMs, durationMs } = order;
  const capacity = halvedWorkerCount * perWorkerSecond;
  const settledMs = halvedMs + followMsMax;
  const goodput = (fromMs: number, untilMs: number, workers: number): number => {
    const isIn = ({ atMs }: LoadAnswer): boolean => atMs >= fromMs && atMs < untilMs;
    const served = answers.filter((answer) => answer.status === 200 && isIn(answer)).length;
    const possible = Math.min(capacity * loadRatio, workers * perWorkerSecond);
    return served / ((possible * (untilMs - fromMs)) / 1_000);
  };
  const settled = answers.filter(({ atMs }) => atMs >= settledMs);
  const servedMs = settled.filter(({ status }) => status === 200).map((one) => one.latencyMs);
  const half = halvedWorkerCount / 2;
  return {
    order,
    goodputBefore: goodput(halvedMs - followMsMax, halvedMs, halvedWorkerCount),
    goodputBetween: goodput(halvedMs, settledMs, half),
    goodputAfter: goodput(settledMs, durationMs, half),
    inFlightAfter: meanOf(
      inFlight.filter(([s]) => s * 1_000 >= settledMs).map(([, count]) => count),
    ),
    followedMs: followedMs(inFlight, halvedMs),
    unansweredCount: unstalled(settled).filter(({ status }) => status === 0).length,
    servedMs: meanOf(servedMs),
    svg: draw(order, { answers, inFlight }),
  };
}

/** Since the loss until a second in whose mean no more than twice the workers were at work. */
function followedMs(inFlight: Points, halvedMs: number): number | undefined {
  for (const [seconds] of inFlight) {
    const second = inFlight.filter(([at]) => at >= seconds && at < seconds + 1);
    const fromMs = seconds * 1_000 - halvedMs;
    if (fromMs >= 0 && meanOf(second.map(([, count]) => count)) <= halvedWorkerCount) return fromMs;
  }
  return undefined;
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function draw(
  { protection, halvedMs, durationMs, loadRatio }: HalvedOrder,
  { answers, inFlight }: { readonly answers: readonly LoadAnswer[]; readonly inFlight: Points },
): string {
  const span = { stepMs: 500, untilMs: durationMs };
  const halves = (whole: number): Points => [
    [0, whole],
    [halvedMs / 1_000, whole],
    [halvedMs / 1_000, whole / 2],
    [durationMs / 1_000, whole / 2],
  ];
  const axes = { xLabel: "seconds" };
  const bound = { color: "#888", isBound: true };
  const title = `${protection}: half of the workers go, ${loadRatio} times the load`;
  return plotSvg(title, [
    {
      ...axes,
      title: "requests a second",
      yLabel: "a second",
      series: [
        { name: "capacity", ...bound, points: halves(halvedWorkerCount * perWorkerSecond) },
        {
          name: "served in time",
          color: "#2a7f3f",
          points: ratesOver(answers, span, ({ status }) => status === 200),
        },
        {
          name: "refused by Envoy",
          color: "#c77700",
          points: ratesOver(answers, span, ({ status }) => status >= 400),
        },
        {
          name: "no answer in time",
          color: "#b3261e",
          points: ratesOver(answers, span, ({ status }) => status === 0),
        },
      ],
    },
    {
      ...axes,
      title: "requests at the upstream (workers and queue)",
      yLabel: "requests",
      series: [
        { name: "workers", ...bound, points: halves(halvedWorkerCount) },
        { name: "in flight", color: "#1f5fa8", points: inFlight },
      ],
    },
  ]);
}
