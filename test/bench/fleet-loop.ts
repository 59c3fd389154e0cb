import type { NodeReport, ShareSnapshot } from "../../src/core/feedback/feedback.js";
import { FleetLoop } from "../../src/core/feedback/feedback-loop.js";
import { eachRow, type ReadReport, readReport } from "../../src/fleet/loop/report-reader.js";
import { ReportScale } from "../../src/fleet/loop/report-scale.js";
import { ReportWriter } from "../../src/fleet/loop/report-writer.js";
import { decodeSnapshot, encodeSnapshot } from "../../src/fleet/loop/snapshot-codec.js";
import { blankReport, type OpenReport } from "../../src/rpc/nodes/open-report.js";
import { runFleet, steadySpan } from "../simulation/fleet-loop-report.js";
import { FleetRun } from "../simulation/fleet-loop-run.js";
import { bigFleet, smallFleet } from "../simulation/fleet-loop-scenarios.js";
import { lawOf } from "../simulation/law-scenarios.js";
import { FakeRandom } from "../support/fake-random.js";
import { mean } from "../support/station.js";
import { layOut } from "./report.js";
import { type LongestTurns, longer, longestTurns, TurnMeter, type TurnMs } from "./turn-meter.js";

/** What the loop of a fleet costs, told each second: CPU, bytes, and the longest turn. */
export interface FleetLoopCost {
  readonly nodeCount: number;
  readonly serviceCount: number;
  /** Of whoever leads, in a second: reading reports, limits and shares, writing the snapshot. */
  readonly leaderMs: number;
  /** Of it, limits and shares. */
  readonly arithmeticMs: number;
  /** Of each replica, in a second: writing its own report, reading the snapshot. */
  readonly replicaMs: number;
  /** Of all replicas together. */
  readonly reportBytes: number;
  readonly snapshotBytes: number;
  readonly turns: LongestTurns;
}

const replicaCount = 3;

/** Updates until everything is compiled, and those that are measured. */
const warmUpCount = 10;
const measuredCount = 20;

/** How far limits and goodput may come from their mean, or from the capacity, but for probes. */
const swingMax = 0.2;

/** Small fleets for each big one. */
const smallPerBig = 500;

/** Does what is done in turns, each measured. */
class Turns extends TurnMeter {
  drain<T>(turns: Generator<undefined, T>): T {
    for (;;) {
      const turn = this.run(() => turns.next());
      if (turn.done === true) return turn.value;
    }
  }
}

/** Measures a fleet that is never the same for two seconds, over three replicas. */
export function measureFleetLoop(nodeCount: number, serviceCount: number): FleetLoopCost {
  const random = new FakeRandom(1);
  const services = Array.from({ length: serviceCount }, (_, i) => ({
    service: `service-${i}`,
    law: lawOf("gradient", { initial: 2 * nodeCount, max: 10 * nodeCount }),
    maxInFlight: undefined,
    configuredShare: 20,
    highRatio: 0.1,
    sigmoid: undefined,
    gate: undefined,
  }));
  const loop = new FleetLoop({ term: 1, leaderId: "bench", services, nowMs: 0 });
  const names = services.map(({ service }) => service);
  const replicas = Array.from({ length: replicaCount }, () => new BenchReplica());
  // The same objects each second, as in \`NodeRegistry\`: the collector's work for others is not
  // the loop's.
  const reports = replicas.map((): OpenReport[] => []);
  let snapshot: ShareSnapshot | undefined;
  const seconds: SecondCost[] = [];
  for (let second = 1; second <= warmUpCount + measuredCount; second += 1) {
    const nowMs = second * 1_000;
    for (const [replica, kept] of reports.entries()) {
      fillReports(kept, { replica, nodeCount, names, nowMs, snapshot, random });
    }
    const [next, cost] = measureSecond(loop, { replicas, reports, nowMs });
    snapshot = next;
    if (second > warmUpCount) seconds.push(cost);
  }
  const of = (read: (cost: SecondCost) => number): number => mean(seconds.map(read));
  return {
    nodeCount,
    serviceCount,
    leaderMs: of(({ leaderMs }) => leaderMs),
    arithmeticMs: of(({ arithmeticMs }) => arithmeticMs),
    replicaMs: of(({ replicaMs }) => replicaMs),
    reportBytes: of(({ reportBytes }) => reportBytes),
    snapshotBytes: of(({ snapshotBytes }) => snapshotBytes),
    turns: longestTurns(seconds.map(({ longest }) => longest)),
  };
}

interface SecondCost extends Pick<FleetLoopCost, "leaderMs" | "arithmeticMs" | "replicaMs"> {
  readonly reportBytes: number;
  readonly snapshotBytes: number;
  readonly longest: TurnMs;
}

/** What replicas tell, what the leader makes of it, and what they read of that. */
function measureSecond(
  loop: FleetLoop,
  { replicas, reports, nowMs }: BenchSecond,
): readonly [ShareSnapshot, SecondCost] {
  const telling = new Turns();
  const gathering = new Turns();
  const taking = new Turns();
  const deciding = new Turns();
  const writing = new Turns();
  const reading = new Turns();
  const told = replicas.map((replica, i) => replica.tell(telling, reports[i] ?? [], nowMs));
  for (const [i, replica] of replicas.entries()) {
    const read = replica.read(gathering, told[i] ?? Buffer.alloc(0), nowMs);
    taking.drain(takeAll(loop, read, nowMs));
  }
  const snapshot = deciding.drain(loop.update(nowMs));
  const { bytes } = writing.drain(encodeSnapshot({ snapshot, verdicts: new Map() }));
  reading.drain(decodeSnapshot(bytes, snapshot));
  const all = [telling, gathering, taking, deciding, writing, reading];
  const arithmeticMs = (taking.usedUs + deciding.usedUs) / 1_000;
  return [
    snapshot,
    {
      leaderMs: arithmeticMs + (gathering.usedUs + writing.usedUs) / 1_000,
      arithmeticMs,
      replicaMs: (telling.usedUs / replicaCount + reading.usedUs) / 1_000,
      reportBytes: told.reduce((sum, one) => sum + one.length, 0),
      snapshotBytes: bytes.length,
      longest: all.map((turns) => turns.takeLongest()).reduce(longer),
    },
  ];
}

/** Bytes that three replicas write of a fleet in a second; see `measureReportBytes`. */
export interface ReportBytes {
  /** Numbers stay within 2 % of their mean. */
  readonly steady: number;
  /** Every number is another one each second. */
  readonly changing: number;
  /** A full record of each replica: at least once in five minutes. */
  readonly full: number;
}

/** Seconds of a fleet whose reports are weighed; the first one is a full record. */
const weighedSeconds = 5;

/** Weighs what replicas write of their Envoys. */
export function measureReportBytes(nodeCount: number, serviceCount: number): ReportBytes {
  const [full, steady] = weigh(nodeCount, serviceCount, 0.02);
  const [, changing] = weigh(nodeCount, serviceCount, 1);
  return { full, steady, changing };
}

function weigh(nodeCount: number, serviceCount: number, swing: number): readonly [number, number] {
  const random = new FakeRandom(1);
  const replicas = Array.from({ length: replicaCount }, () => new BenchReplica());
  const turns = new Turns();
  const bytes: number[] = [];
  for (let second = 1; second <= weighedSeconds; second += 1) {
    const nowMs = 1_000 * second;
    let sum = 0;
    for (const [replica, one] of replicas.entries()) {
      const nodes: NodeReport[] = [];
      for (let i = replica; i < nodeCount; i += replicaCount) {
        for (let j = 0; j < serviceCount; j += 1) {
          const mean = 5 + ((7 * i + 3 * j) % 40);
          const rps = 20 * mean * (1 + swing * (2 * random.next() - 1));
          nodes.push({
            ...{ nodeId: nodeIdOf(i), owner: undefined, service: `service-${j}` },
            ...{ atMs: nowMs - ((37 * i) % 800) - 20 * random.next(), heldAtMs: nowMs },
            ...{ inFlight: Math.round(rps / 20), rps, latency: { count: rps, sumMs: 50 * rps } },
            ...{ errorCount: 0, dropCount: 0, overflowCount: 0, held: 2 * mean },
          });
        }
      }
      sum += one.tell(turns, nodes, nowMs).length;
    }
    bytes.push(sum);
  }
  return [bytes[0] ?? 0, mean(bytes.slice(1))];
}

function nodeIdOf(i: number): string {
  return `sidecar~10.0.${i >> 8}.${i & 255}~shop-${i}.shop~shop.svc.cluster.local`;
}

interface BenchSecond {
  readonly replicas: readonly BenchReplica[];
  readonly reports: readonly (readonly NodeReport[])[];
  readonly nowMs: number;
}

/** A replica that writes what its Envoys do, and what the leader knows of it. */
class BenchReplica {
  readonly #writer = new ReportWriter();
  #number = 0;
  #base: ReadReport | undefined;

  tell(turns: Turns, nodes: readonly NodeReport[], nowMs: number): Buffer {
    this.#number += 1;
    const terms = { number: this.#number, now: () => nowMs };
    const { bytes } = turns.drain(this.#writer.encode({ nodes, services: [] }, terms));
    this.#writer.confirm();
    return bytes;
  }

  read(turns: Turns, bytes: Buffer, atMs: number): ReadReport {
    const read = turns.drain(readReport({ bytes, atMs }, this.#base));
    if (read === undefined) throw new Error("a record that cannot be read");
    if (read.baseNumber === 0) this.#base = read;
    return read;
  }
}

const scale = new ReportScale();

/** In turns, as \`LeaderTerm\` does. */
function* takeAll(loop: FleetLoop, read: ReadReport, nowMs: number): Generator<undefined, void> {
  yield* eachRow(read, scale, (report) => loop.take(report, nowMs));
  for (const samples of read.samples) loop.takeSamples(samples);
  const { atMs, table } = read;
  const source = table.nodeIds[0] ?? "";
  for (const one of read.remainders) loop.takeRemainder({ ...one, source, atMs });
}

/** Fleets of which the cost is told: Envoys, and services of each. */
const toldFleets = [
  [1_000, 20],
  [3_333, 20],
  [10_000, 20],
  [10_000, 50],
] as const;

/**
 * The cost as a table. The leader is a replica, too, but reads no snapshot, since it has made it.
 */
export function tellFleetLoopCosts(fleets: readonly (readonly [number, number])[]): string {
  const head = [
    "Envoys x services",
    "leader, % of a core",
    "us an Envoy and service",
    "of it, arithmetic",
    "replica, % of a core",
    "us an Envoy and service of its own",
    "MB/s to the store",
    "MB/s from it",
    "longest turn, ms (median, most)",
    "of all threads",
  ];
  const rows = fleets.map(([nodeCount, serviceCount]) => {
    const cost = measureFleetLoop(nodeCount, serviceCount);
    const { leaderMs, arithmeticMs, replicaMs, reportBytes, snapshotBytes, turns } = cost;
    const longest = (of: "main" | "all"): string =>
      [turns.median[of], turns.most[of]].map((ms) => ms.toFixed(1)).join(", ");
    const us = (ms: number, count: number): string => ((1_000 * ms) / count).toFixed(2);
    const rowCount = nodeCount * serviceCount;
    const mb = (bytes: number): string => (bytes / 1e6).toFixed(2);
    return [
      `${nodeCount} x ${serviceCount}`,
      (leaderMs / 10).toFixed(1),
      us(leaderMs, rowCount),
      us(arithmeticMs, rowCount),
      (replicaMs / 10).toFixed(1),
      us(replicaMs, rowCount / replicaCount),
      mb(reportBytes + snapshotBytes),
      mb(reportBytes + (replicaCount - 1) * snapshotBytes),
      longest("main"),
      longest("all"),
    ];
  });
  return layOut([head, ...rows]);
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
    tellFleetLoopCosts(toldFleets),
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
  /** From 0. */
  readonly replica: number;
  readonly nodeCount: number;
  readonly names: readonly string[];
  readonly nowMs: number;
  readonly snapshot: ShareSnapshot | undefined;
  readonly random: FakeRandom;
}

/** What a replica is told by its third of the Envoys. */
function fillReports(kept: OpenReport[], order: ReportOrder): void {
  const { replica, nodeCount, names, nowMs, snapshot, random } = order;
  let at = 0;
  for (let i = replica; i < nodeCount; i += replicaCount) {
    const atMs = nowMs - random.next() * 500;
    for (const service of names) {
      const report = kept[at] ?? blankReport(service);
      kept[at] = report;
      at += 1;
      if (report.nodeId === "") report.nodeId = nodeIdOf(i);
      const share = snapshot?.services.get(service)?.shares.get(report.nodeId);
      const held = share === undefined ? 0 : share.default + share.high;
      const inFlight = Math.floor(held * random.next());
      report.atMs = atMs;
      report.inFlight = inFlight;
      report.rps = inFlight * 20;
      report.overflowCount = random.next() < 0.3 ? Math.floor(random.next() * 50) : 0;
      report.dropCount = report.overflowCount;
      report.latency.count = inFlight * 20;
      report.latency.sumMs = inFlight * 20 * (50 + 20 * random.next());
      report.held = held;
      report.heldAtMs = nowMs;
    }
  }
}
