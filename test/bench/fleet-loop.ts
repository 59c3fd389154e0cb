import type { NodeReport, ShareSnapshot } from "../../src/core/feedback/feedback.js";
import { FleetLoop } from "../../src/core/feedback/feedback-loop.js";
import { mean, runFleet, steadySpan } from "../simulation/fleet-loop-report.js";
import { FleetRun } from "../simulation/fleet-loop-run.js";
import { bigFleet, smallFleet } from "../simulation/fleet-loop-scenarios.js";
import { lawOf } from "../simulation/law-scenarios.js";
import { allTurns } from "../support/all-turns.js";
import { FakeRandom } from "../support/fake-random.js";
import { layOut } from "./report.js";

/** What the arithmetic of the loop costs whoever leads. */
export interface FleetLoopCost {
  readonly nodeCount: number;
  readonly serviceCount: number;
  /** Of one update, which there is each second: so a thousand is a whole core. */
  readonly cpuMsPerUpdate: number;
  readonly cpuUsPerReport: number;
}

/** The fleet that the cost is told of. */
const namedFleet = { nodeCount: 1_000, serviceCount: 20 } as const;

/** Updates until everything is compiled, and those that are measured. */
const warmUpCount = 20;
const measuredCount = 60;

/** How far limits and goodput may come from their mean, or from the capacity, but for probes. */
const swingMax = 0.2;

/** Small fleets for each big one. */
const smallPerBig = 500;

/** Measures updates of a fleet that is never the same for two seconds. */
export function measureFleetLoop({ nodeCount, serviceCount } = namedFleet): FleetLoopCost {
  const random = new FakeRandom(1);
  const services = Array.from({ length: serviceCount }, (_, i) => ({
    service: `service-${i}`,
    law: lawOf("gradient", { initial: 2_000, max: 10_000 }),
    maxInFlight: undefined,
    configuredShare: 20,
    highRatio: 0.1,
    sigmoid: undefined,
    gate: undefined,
  }));
  const loop = new FleetLoop({ term: 1, leaderId: "bench", services, nowMs: 0 });
  let snapshot: ShareSnapshot | undefined;
  let usedUs = 0;
  for (let second = 1; second <= warmUpCount + measuredCount; second += 1) {
    const nowMs = second * 1_000;
    const reports = services.flatMap(({ service }) =>
      Array.from({ length: nodeCount }, (_, i) =>
        reportOf({ nodeId: `edge-${i}`, service, nowMs, snapshot, random }),
      ),
    );
    const before = process.cpuUsage();
    snapshot = allTurns(loop.update(reports, nowMs));
    const { user, system } = process.cpuUsage(before);
    if (second > warmUpCount) usedUs += user + system;
  }
  const updateUs = usedUs / measuredCount;
  return {
    nodeCount,
    serviceCount,
    cpuMsPerUpdate: updateUs / 1_000,
    cpuUsPerReport: updateUs / (nodeCount * serviceCount),
  };
}

/** The cost as a line. */
export function tellFleetLoopCost(cost: FleetLoopCost): string {
  const { nodeCount, serviceCount, cpuMsPerUpdate, cpuUsPerReport } = cost;
  const fleet = `${nodeCount} Envoys with ${serviceCount} services each`;
  const perCent = (cpuMsPerUpdate / 10).toFixed(1);
  const perReport = `${cpuUsPerReport.toFixed(2)} us an Envoy and service`;
  const perSecond = `${cpuMsPerUpdate.toFixed(0)} ms of CPU a second (${perCent} % of a core)`;
  return `The loop, ${fleet}: ${perSecond}, ${perReport}.`;
}

/** What so many seeds of small fleets showed, a big one for each 500, and what it costs. */
export interface FleetReport {
  readonly text: string;
  readonly isSound: boolean;
}

/** Runs seeds from `first` on. */
export function tellFleets({ first, count }: { first: number; count: number }): FleetReport {
  const seeds = Array.from({ length: count }, (_, i) => first + i);
  const failures = seeds.flatMap((seed) => {
    const failure = runFleet(smallFleet(seed), { seed, seconds: 90 });
    return failure === "" ? [] : [`seed ${seed}: ${failure}`];
  });
  const big = seeds.slice(0, Math.ceil(count / smallPerBig)).map(lookAtBig);
  const rows = big.map(({ row }) => row);
  const head = [
    "seed",
    "goodput each second",
    "least mean",
    "limit within",
    "in probes",
    "violations",
  ];
  const text = [
    `${count} small fleets, ${failures.length} failed.`,
    ...failures.slice(0, 3),
    layOut([head, ...rows]),
    tellFleetLoopCost(measureFleetLoop()),
  ].join("\n");
  return { text, isSound: failures.length === 0 && big.every(({ isSound }) => isSound) };
}

/** Of all services the worst of each figure; but for probes, which are told of by themselves. */
function lookAtBig(seed: number): { readonly row: readonly string[]; readonly isSound: boolean } {
  const run = new FleetRun(bigFleet(), seed);
  run.span(180);
  const spans = bigFleet().services.map((_, place) => steadySpan(run.seconds(place), 60));
  const steady = spans.flatMap((span) => span.steady.map(({ goodputRatio }) => goodputRatio));
  const least = Math.min(...steady);
  const most = Math.max(...steady);
  const leastMean = Math.min(
    ...spans.map(({ seconds }) => mean(seconds.map(({ goodputRatio }) => goodputRatio))),
  );
  const farthest = Math.max(...spans.map(({ swingRatio }) => swingRatio));
  const allCount = spans.reduce((sum, { seconds }) => sum + seconds.length, 0);
  const violationCount = run.violations.length;
  const row = [
    `${seed}`,
    `${percent(least)} to ${percent(most)}`,
    percent(leastMean),
    percent(farthest),
    percent(1 - steady.length / allCount),
    `${violationCount}`,
  ];
  const isSteady = farthest <= swingMax && least >= 1 - swingMax && most <= 1 + swingMax;
  return { row, isSound: violationCount === 0 && isSteady };
}

function percent(ratio: number): string {
  return `${Math.round(100 * ratio)}%`;
}

interface ReportOrder {
  readonly nodeId: string;
  readonly service: string;
  readonly nowMs: number;
  readonly snapshot: ShareSnapshot | undefined;
  readonly random: FakeRandom;
}

function reportOf({ nodeId, service, nowMs, snapshot, random }: ReportOrder): NodeReport {
  const share = snapshot?.services.get(service)?.shares.get(nodeId);
  const held = share === undefined ? 0 : share.default + share.high;
  const inFlight = Math.floor(held * random.next());
  const overflowCount = random.next() < 0.3 ? Math.floor(random.next() * 50) : 0;
  return {
    nodeId,
    service,
    atMs: nowMs - random.next() * 500,
    inFlight,
    rps: inFlight * 20,
    latency: { count: inFlight * 20, sumMs: inFlight * 20 * (50 + 20 * random.next()) },
    errorCount: 0,
    dropCount: overflowCount,
    overflowCount,
    held,
    heldAtMs: nowMs,
  };
}
