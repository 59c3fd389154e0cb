import { ClassCounts } from "../../src/core/admission/class-counts.js";
import { type Priority, priorities } from "../../src/core/admission/priority.js";
import type { EventCalendar } from "../../src/simulate/engine/calendar.js";
import { quantile } from "../support/station.js";
import { HeadgateProtection } from "./goodput-admission.js";
import {
  type GoodputCaller,
  GoodputRun,
  type GoodputSpan,
  type GoodputTicket,
  type Protection,
} from "./goodput-run.js";
import { SimulatedPermits, type SimulatedShares } from "./goodput-shares.js";
import { type MatrixWorld, runSeedsOf, titleOf, workerRatioAfter } from "./goodput-worlds.js";

/** What the best static limit of a world does. */
export interface BestStatic {
  readonly limit: number;
  readonly usefulRatio: number;
  readonly p99Ms: number;
  /** Critical requests that were served, as a share of those that asked. */
  readonly criticalRatio: number;
  /** Let in and late, although their work alone would have been done in time, as a share. */
  readonly lateRatio: number;
}

/** What is asked of each world. */
export const verdictNames = ["goodput", "critical", "late", "p99"] as const;

/** One of them. */
export type VerdictName = (typeof verdictNames)[number];

/** What all runs of a world did together; a latency of each request would be much to keep. */
type WorldSpan = Omit<GoodputSpan, "latenciesMs">;

/** How a world ended: what was to be reached, and how far it is from that. */
export interface WorldResult {
  readonly one: MatrixWorld;
  readonly span: WorldSpan;
  readonly best: BestStatic;
  /** By verdict, how much is missing, as a share of what was asked; 0 and below: it holds. */
  readonly missing: Readonly<Record<VerdictName, number>>;
}

/** Below such a demand critical requests are all to be served. */
const criticalDemandMax = 0.9;

/** The limit by which a static one is best: the least with so much of the highest goodput. */
const bestPart = 0.995;

/** Runs a world behind Headgate's admission, and holds it against its best static limit. */
export function runWorld(one: MatrixWorld, best: BestStatic): WorldResult {
  const span = spanOf(one, protectionOf);
  return { one, span, best, missing: missingOf(one, span, best) };
}

/**
 * The best static limit of a world, found by search: the least that has nearly the highest goodput
 * (99.5 % of it). Lower classes give way to higher ones at it, and critical requests pass it where
 * they do not fill the service alone, as they do in Headgate.
 */
export function searchBest(one: MatrixWorld): BestStatic {
  const seen: BestStatic[] = [];
  let highest = 0;
  let withoutGain = 0;
  for (const limit of candidatesOf(one)) {
    const best = bestOf(
      limit,
      spanOf(one, (calendar, run) => referenceOf(calendar, run, limit)),
    );
    seen.push(best);
    withoutGain = best.usefulRatio > highest * 1.002 ? 0 : withoutGain + 1;
    highest = Math.max(highest, best.usefulRatio);
    if (withoutGain >= 2) break;
  }
  const best = seen.find(({ usefulRatio }) => usefulRatio >= bestPart * highest);
  if (best === undefined) throw new Error("no static limit was tried");
  return best;
}

/** Results as a text: how many worlds failed by verdict and dimension, and the worst of them. */
export function tellMatrix(results: readonly WorldResult[]): string {
  const lines = [`${results.length} worlds`];
  for (const verdict of verdictNames) {
    const failed = results.filter(({ missing }) => missing[verdict] > 0);
    lines.push(`${verdict}: ${failed.length} fail${tellDimensions(failed, results)}`);
    const worst = failed.toSorted((a, b) => b.missing[verdict] - a.missing[verdict]);
    for (const result of worst.slice(0, 3)) lines.push(`  ${tellResult(result)}`);
  }
  return lines.join("\n");
}

/** A result in a line. */
export function tellResult({ one, span, best }: WorldResult): string {
  const { usefulRatio, p99Ms, limit, servedRatio } = span;
  const own = `goodput ${percent(usefulRatio)} p99 ${Math.round(p99Ms)} limit ${limit}`;
  const most = `${percent(best.usefulRatio)} ${Math.round(best.p99Ms)} ${best.limit}`;
  const critical = `critical ${percent(servedRatio.critical)} (${percent(best.criticalRatio)})`;
  const late = `late ${span.avoidablyLateCount} of ${span.admittedCount}`;
  return `${titleOf(one)}: ${own} (best ${most}), ${critical}, ${late}`;
}

function tellDimensions(failed: readonly WorldResult[], all: readonly WorldResult[]): string {
  const dimensions: readonly ((one: MatrixWorld) => string)[] = [
    ({ world }) => `${world.workerCount} workers`,
    ({ world }) => `${world.serviceMs} ms`,
    ({ service }) => service,
    ({ world }) => `${world.loadRatio}x`,
    ({ policy }) => policy,
    ({ initial }) => `from ${initial}`,
    ({ event }) => event,
    ({ disturbance }) => disturbance,
  ];
  return dimensions
    .map((of) => {
      const names = [...new Set(all.map(({ one }) => of(one)))].sort();
      const count = (results: readonly WorldResult[], name: string): number =>
        results.filter(({ one }) => of(one) === name).length;
      const reported = names.map((name) => `${name} ${count(failed, name)}/${count(all, name)}`);
      return `\n    ${reported.join(", ")}`;
    })
    .join("");
}

/** All runs of a world together, each with arrivals and work of its own. */
function spanOf(
  one: MatrixWorld,
  protect: (calendar: EventCalendar, run: MatrixWorld) => Protection,
): WorldSpan {
  const spans = runSeedsOf(one).map((seed) => {
    const own = { ...one, seed };
    const run = new GoodputRun(one.world, seed, (calendar) => protect(calendar, own));
    run.span(one.settleMs);
    return run.span(one.lookMs);
  });
  return togetherOf(spans);
}

/** Spans of equal capacity as one. */
function togetherOf(spans: readonly GoodputSpan[]): WorldSpan {
  const sum = (of: (span: GoodputSpan) => number): number =>
    spans.reduce((all, span) => all + of(span), 0);
  const mean = (of: (span: GoodputSpan) => number): number => sum(of) / spans.length;
  const byPriority = (of: (priority: Priority) => number): Record<Priority, number> => ({
    critical: of("critical"),
    high: of("high"),
    normal: of("normal"),
    low: of("low"),
  });
  const asked = byPriority((priority) => sum((span) => span.asked[priority]));
  const admittedCount = sum((span) => span.admittedCount);
  return {
    goodputRatio: mean((span) => span.goodputRatio),
    usefulRatio: mean((span) => span.usefulRatio),
    asked,
    servedRatio: byPriority((priority) => {
      const served = sum((span) => span.servedRatio[priority] * span.asked[priority]);
      return asked[priority] === 0 ? 1 : served / asked[priority];
    }),
    lateRatio: sum((span) => span.lateRatio * span.admittedCount) / Math.max(1, admittedCount),
    admittedCount,
    avoidablyLateCount: sum((span) => span.avoidablyLateCount),
    p99Ms: quantile(
      spans.flatMap((span) => span.latenciesMs),
      0.99,
    ),
    limit: Math.round(mean((span) => span.limit)),
  };
}

function bestOf(limit: number, span: WorldSpan): BestStatic {
  return {
    limit,
    usefulRatio: span.usefulRatio,
    p99Ms: span.p99Ms,
    criticalRatio: span.servedRatio.critical,
    lateRatio: span.avoidablyLateCount / Math.max(1, span.admittedCount),
  };
}

/**
 * What all runs of a world together miss. What counts is allowed its chance: three standard
 * deviations of a Poisson count whose mean is the most that may be.
 */
function missingOf(
  one: MatrixWorld,
  span: WorldSpan,
  best: BestStatic,
): Readonly<Record<VerdictName, number>> {
  const isHeavy = one.service === "heavyTailed";
  const part = isHeavy || one.event !== "nothing" ? 0.95 : 0.98;
  const lateMax = withChance(Math.max(0.001, best.lateRatio) * span.admittedCount);
  const askedCount = span.asked.critical;
  const lostCount = (1 - span.servedRatio.critical) * askedCount;
  const lostMax = withChance((0.001 + Math.max(0, 1 - best.criticalRatio)) * askedCount);
  const isPossible = one.criticalDemandRatio < criticalDemandMax;
  return {
    goodput: part * best.usefulRatio - span.usefulRatio,
    critical: isPossible ? (lostCount - lostMax) / Math.max(1, askedCount) : 0,
    late: (span.avoidablyLateCount - lateMax) / Math.max(1, span.admittedCount),
    p99: span.p99Ms / (1.3 * best.p99Ms) - 1,
  };
}

function withChance(count: number): number {
  return count + 3 * Math.sqrt(count);
}

/** From one per worker on, in steps that grow with the queue. */
function candidatesOf({ world, event }: MatrixWorld): readonly number[] {
  const busyCount = Math.max(1, Math.round(world.workerCount * workerRatioAfter(event)));
  const queues = [0, 1, 2, 4, 7, 12, 20, 33, 54, 90, 150, 250];
  return queues.map((queue) => busyCount + queue);
}

function protectionOf(calendar: EventCalendar, one: MatrixWorld): Protection {
  const { policy, initial, seed } = one;
  const law = `concurrency: {limits: {initial: ${initial}}}`;
  const { workerCount } = one.world;
  switch (policy) {
    case "learned":
      return new HeadgateProtection(calendar, { blocks: `admission: {}, ${law}`, seed });
    case "queue":
      return new HeadgateProtection(calendar, {
        blocks: `admission: {${queueOf(one)}}, ${law}`,
        seed,
      });
    case "maxInFlight": {
      const admission = `admission: {maxInFlight: ${4 * workerCount + 20}}`;
      return new HeadgateProtection(calendar, { blocks: `${admission}, ${law}`, seed });
    }
    case "replicas": {
      const permits = new SimulatedPermits(calendar);
      const blocks = `admission: {}, ${law}`;
      const replicas = [0, 1].map((i) => {
        const shares = permits.replica(`replica-${i}`, 80 * i);
        const protection = new HeadgateProtection(calendar, { blocks, seed: seed + i, shares });
        return { protection, shares };
      });
      return new InTurn(replicas);
    }
  }
}

/**
 * What knows the number, and lets critical requests pass it as Headgate does. Where a policy asks
 * for a queue, it is Headgate itself with that queue: waiting there takes time, whatever the limit.
 */
function referenceOf(calendar: EventCalendar, one: MatrixWorld, limit: number): Protection {
  if (one.policy !== "queue") return new StaticProtection(one, limit);
  // Bounds leave the law nothing to learn but what critical requests need.
  const law = `concurrency: {limits: {min: ${limit}, max: ${limit}, initial: ${limit}}}`;
  return new HeadgateProtection(calendar, {
    blocks: `admission: {${queueOf(one)}}, ${law}`,
    seed: one.seed,
  });
}

function queueOf({ world: { serviceMs, workerCount } }: MatrixWorld): string {
  const waitMs = Math.max(300, Math.round(6 * serviceMs));
  return `queue: {size: ${2 * workerCount + 10}, maxWait: ${waitMs}ms}`;
}

interface Replica {
  readonly protection: Protection;
  readonly shares: SimulatedShares;
}

/** Replicas that are asked in turn; the first one is lost with its zone. */
class InTurn implements Protection {
  #replicas: readonly Replica[];
  #askedCount = 0;

  constructor(replicas: readonly Replica[]) {
    this.#replicas = replicas;
  }

  get limit(): number {
    return this.#replicas.reduce((sum, { protection }) => sum + protection.limit, 0);
  }

  ask(caller: GoodputCaller): GoodputTicket {
    this.#askedCount += 1;
    const replica = this.#replicas[this.#askedCount % this.#replicas.length];
    if (replica === undefined) throw new Error("there are no replicas");
    return replica.protection.ask(caller);
  }

  loseZone(): void {
    this.#replicas[0]?.shares.stop();
    this.#replicas = this.#replicas.slice(1);
  }
}

/** A limit that knows the number. */
class StaticProtection implements Protection {
  readonly limit: number;
  readonly #passes: ReadonlySet<Priority>;
  readonly #inUse = new ClassCounts();

  constructor({ criticalDemandRatio }: MatrixWorld, limit: number) {
    this.limit = limit;
    const isPossible = criticalDemandRatio < criticalDemandMax;
    this.#passes = new Set(isPossible ? priorities.slice(0, 1) : []);
  }

  ask(caller: GoodputCaller): GoodputTicket {
    const { priority } = caller;
    const isFree = this.#passes.has(priority) || this.#inUse.from(priority) < this.limit;
    if (!isFree) {
      caller.refuse();
      return { ended: () => {} };
    }
    this.#inUse.add(priority, 1);
    caller.admit();
    return { ended: () => this.#inUse.add(priority, -1) };
  }
}

function percent(ratio: number): string {
  return `${(100 * ratio).toFixed(1)}%`;
}
