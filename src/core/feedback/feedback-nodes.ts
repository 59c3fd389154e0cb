import { Tally } from "../collections/tally.js";
import type { NodeReport } from "./feedback.js";
import { type LoopTimes, loopNodesMax, loopSparePlaces } from "./feedback-settings.js";

/** Reports whose times lie nearer together than this are one that came twice, in milliseconds. */
export const reportGapMsMin = 100;

/** What is left of a demand after a second in which there was less, as an estimate. */
const demandKeptPerSecond = 0.6;

/**
 * The same at HIGH, of which there is little: one look a second finds none where there are two in
 * the mean once in seven times, and who is refused for that is critical.
 */
const highDemandKeptPerSecond = 0.85;

/** The most by which refusals count as demand, next to what was served. */
const refusedRatioMax = 100;

/** What one Envoy said last of one service. */
interface NodeNumbers {
  /** When that was true; minus infinity where it has said nothing since this leader began. */
  readonly atMs: number;
  readonly inFlight: number;
  readonly rps: number;
  /** Requests that it refused for its share, a second: where there are any, it was full. */
  readonly overflowPerSecond: number;
  /** Requests that it would have in work at once if it might: from 0, with fractions. */
  readonly demand: number;
  /** Of them, those at HIGH; undefined where it does not say. */
  readonly highDemand: number | undefined;
}

/** A report that is news. */
interface NodeNews {
  readonly report: NodeReport;
  /** When what it counts begins; minus infinity for an Envoy's first, of which nobody knows. */
  readonly fromMs: number;
}

/**
 * What the Envoys of one service said last, whatever of it was lost, late, or came twice.
 *
 * Demand is what was in work, or by Little's law what served requests took, and where Envoy refused
 * requests as many times more as came in all:
 *
 * ```
 * demand = max(inFlight, rps * latency) * (1 + refused / served)
 * ```
 *
 * Less than before is believed step by step, 0.6 of it a second, since one look a second misses
 * what was in between.
 *
 * Example: a share of 10, all in use, 100 served and 900 refused: a demand of 100.
 */
export class FeedbackNodes {
  readonly #times: Pick<LoopTimes, "numbersMsMax" | "nodeLeaseMs">;
  readonly #nodes = new Map<string, Node>();
  readonly #countByOwner = new Tally<string | undefined>();
  #crowdedOutCount = 0;

  constructor(times: Pick<LoopTimes, "numbersMsMax" | "nodeLeaseMs">) {
    this.#times = times;
  }

  /** In the order in which they were first heard of. */
  get ids(): Iterable<string> {
    return this.#nodes.keys();
  }

  /** Envoys that have a part of the limit: heard of within their lease. */
  get count(): number {
    return this.#nodes.size;
  }

  /** Reports of Envoys for which there was no place. */
  get crowdedOutCount(): number {
    return this.#crowdedOutCount;
  }

  has(nodeId: string): boolean {
    return this.#nodes.has(nodeId);
  }

  /** An Envoy that a snapshot speaks of: it has its lease from now on, and has asked before. */
  restore(nodeId: string, nowMs: number): void {
    const askedMs = Number.NEGATIVE_INFINITY;
    this.#keep(nodeId, { owner: undefined, heardMs: nowMs, askedMs, numbers: silence });
  }

  /** Whose it is; undefined: nobody has said so. */
  owner(nodeId: string): string | undefined {
    return this.#nodes.get(nodeId)?.owner;
  }

  /** When it first had requests for the service; undefined: it never had any. */
  askedMs(nodeId: string): number | undefined {
    return this.#nodes.get(nodeId)?.askedMs;
  }

  /** What it said last. */
  numbers(nodeId: string): NodeNumbers {
    return this.#nodes.get(nodeId)?.numbers ?? silence;
  }

  /** Whether its last numbers still say something of now. */
  isFresh(nodeId: string, nowMs: number): boolean {
    return nowMs - this.numbers(nodeId).atMs <= this.#times.numbersMsMax;
  }

  /** Whether anybody has heard of it lately, be it by its numbers or by what it holds. */
  isHeard(nodeId: string, nowMs: number): boolean {
    const heardMs = this.#nodes.get(nodeId)?.heardMs ?? Number.NEGATIVE_INFINITY;
    return nowMs - heardMs <= this.#times.numbersMsMax;
  }

  /** Whether it speaks of an Envoy that is another identity's, to some other replica. */
  isAnothers({ nodeId, owner }: NodeReport): boolean {
    const known = this.owner(nodeId);
    return known !== undefined && known !== owner;
  }

  /** Takes a report in. @returns what it teaches; undefined for one that is no news */
  take(report: NodeReport, nowMs: number): NodeNews | undefined {
    const { nodeId, owner } = report;
    const atMs = Math.min(report.atMs, nowMs);
    const known = this.#nodes.get(nodeId);
    if (nowMs - atMs > this.#times.numbersMsMax) return undefined;
    if (known !== undefined && atMs - known.numbers.atMs < reportGapMsMin) return undefined;
    if (known === undefined && !this.#hasPlace(owner)) {
      this.#crowdedOutCount += 1;
      return undefined;
    }
    const before = known?.numbers ?? silence;
    const heardMs = Math.max(atMs, known?.heardMs ?? atMs);
    const numbers = numbersOf(report, before, atMs);
    // Answers within less than a millisecond are no demand, and those of a first report have no
    // rate, since nobody knows the time that it covers; and yet somebody asked.
    const hasAsked = report.rps > 0 || report.latency.count > 0 || numbers.demand > 0;
    const askedMs = known?.askedMs ?? (hasAsked ? atMs : undefined);
    this.#keep(nodeId, { owner, heardMs, askedMs, numbers });
    return { report, fromMs: before.atMs };
  }

  /** It was heard of, though not by its numbers: its lease begins anew. */
  noteHeard(nodeId: string, atMs: number): void {
    const known = this.#nodes.get(nodeId);
    if (known !== undefined) known.heardMs = Math.max(known.heardMs, atMs);
  }

  /** Those whose lease is over, and whose they are; they are forgotten. */
  takeGone(nowMs: number): ReadonlyMap<string, string | undefined> {
    const gone = new Map<string, string | undefined>();
    for (const [nodeId, { heardMs, owner }] of this.#nodes) {
      if (nowMs - heardMs >= this.#times.nodeLeaseMs) gone.set(nodeId, owner);
    }
    for (const [nodeId, owner] of gone) {
      this.#countByOwner.add(owner, -1);
      this.#nodes.delete(nodeId);
    }
    return gone;
  }

  /** One identity's names keep nobody else out. */
  #hasPlace(owner: string | undefined): boolean {
    const { size } = this.#nodes;
    if (size < loopNodesMax) return true;
    const isFew = this.#countByOwner.get(owner) < loopSparePlaces;
    return isFew && size < loopNodesMax + loopSparePlaces;
  }

  #keep(nodeId: string, node: Node): void {
    if (this.#nodes.has(nodeId)) this.#countByOwner.add(this.owner(nodeId), -1);
    this.#countByOwner.add(node.owner, 1);
    this.#nodes.set(nodeId, node);
  }
}

interface Node {
  /** As in `NodeReport`. */
  readonly owner: string | undefined;
  /** When its lease began anew. */
  heardMs: number;
  readonly askedMs: number | undefined;
  readonly numbers: NodeNumbers;
}

const silence: NodeNumbers = {
  atMs: Number.NEGATIVE_INFINITY,
  inFlight: 0,
  rps: 0,
  overflowPerSecond: 0,
  demand: 0,
  highDemand: undefined,
};

function numbersOf(report: NodeReport, before: NodeNumbers, atMs: number): NodeNumbers {
  const { inFlight, rps, highInFlight } = report;
  const kept = demandKeptPerSecond ** ((atMs - before.atMs) / 1_000);
  const highKept = highDemandKeptPerSecond ** ((atMs - before.atMs) / 1_000);
  const demand = Math.max(demandOf(report), before.demand * kept);
  const highDemand =
    highInFlight === undefined
      ? undefined
      : Math.max(highInFlight, (before.highDemand ?? 0) * highKept);
  const sinceMs = atMs - before.atMs;
  // Of an Envoy's first report nobody knows the time: it is taken to be one second's.
  const seconds = Number.isFinite(sinceMs) ? sinceMs / 1_000 : 1;
  const overflowPerSecond = report.overflowCount / seconds;
  return { atMs, inFlight, rps, overflowPerSecond, demand, highDemand };
}

function demandOf({ inFlight, rps, latency, overflowCount }: NodeReport): number {
  const { count, sumMs } = latency;
  const inWork = Math.max(inFlight, count === 0 ? 0 : (rps / 1_000) * (sumMs / count));
  const refusedRatio = overflowCount / Math.max(1, count);
  // Where nobody told how many were served, one in work at least stands for those who were refused.
  return (
    Math.max(inWork, Math.min(1, overflowCount)) * (1 + Math.min(refusedRatioMax, refusedRatio))
  );
}
