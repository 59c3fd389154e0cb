import { Tally } from "../collections/tally.js";
import type { NodeReport } from "./feedback.js";
import { type LoopTimes, loopNodesMax, loopSparePlaces } from "./feedback-settings.js";
import type { ShareEntry } from "./share-ledger.js";

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

/** One Envoy of one service: what it said last, and what it was given. */
export interface FeedbackNode {
  readonly nodeId: string;
  /** As in `NodeReport`; undefined: nobody has said so. */
  owner: string | undefined;
  /** When its lease began anew. */
  heardMs: number;
  /** When it first had requests for the service; undefined: it never had any. */
  askedMs: number | undefined;
  /** When its numbers were true; minus infinity: it has said nothing since this leader began. */
  atMs: number;
  inFlight: number;
  rps: number;
  /** Requests that it refused for its share, a second: where there are any, it was full. */
  overflowPerSecond: number;
  /** Requests that it would have in work at once if it might: from 0, with fractions. */
  demand: number;
  /** Of them, those at HIGH; undefined where it does not say. */
  highDemand: number | undefined;
  /** What it may hold; undefined before its first share. */
  entry: ShareEntry | undefined;
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
  readonly #nodes = new Map<string, FeedbackNode>();
  readonly #countByOwner = new Tally<string | undefined>();
  #crowdedOutCount = 0;

  constructor(times: Pick<LoopTimes, "numbersMsMax" | "nodeLeaseMs">) {
    this.#times = times;
  }

  /** In the order in which they were first heard of. */
  get all(): Iterable<FeedbackNode> {
    return this.#nodes.values();
  }

  /** Envoys that have a part of the limit: heard of within their lease. */
  get count(): number {
    return this.#nodes.size;
  }

  /** Reports of Envoys for which there was no place. */
  get crowdedOutCount(): number {
    return this.#crowdedOutCount;
  }

  /** One that is heard of within its lease. */
  find(nodeId: string): FeedbackNode | undefined {
    return this.#nodes.get(nodeId);
  }

  /** An Envoy that a snapshot speaks of: it has its lease from now on, and has asked before. */
  restore(nodeId: string, nowMs: number): FeedbackNode {
    const node = this.#meet(nodeId, undefined, nowMs);
    node.askedMs = Number.NEGATIVE_INFINITY;
    return node;
  }

  /** Whether its last numbers still say something of now. */
  isFresh({ atMs }: FeedbackNode, nowMs: number): boolean {
    return nowMs - atMs <= this.#times.numbersMsMax;
  }

  /** Whether anybody has heard of it lately, be it by its numbers or by what it holds. */
  isHeard({ heardMs }: FeedbackNode, nowMs: number): boolean {
    return nowMs - heardMs <= this.#times.numbersMsMax;
  }

  /**
   * Takes a report in.
   *
   * @param known as `find` has it: who calls has looked for it already
   * @returns when what it counts begins, minus infinity for an Envoy's first, of which nobody
   *   knows; undefined for a report that is no news
   */
  take(
    report: NodeReport,
    nowMs: number,
    known: FeedbackNode | undefined = this.find(report.nodeId),
  ): number | undefined {
    const { nodeId, owner } = report;
    const atMs = Math.min(report.atMs, nowMs);
    if (nowMs - atMs > this.#times.numbersMsMax) return undefined;
    if (known !== undefined && atMs - known.atMs < reportGapMsMin) return undefined;
    if (known === undefined && !this.#hasPlace(owner)) {
      this.#crowdedOutCount += 1;
      return undefined;
    }
    const node = known ?? this.#meet(nodeId, owner, atMs);
    if (node.owner !== owner) {
      this.#countByOwner.add(node.owner, -1);
      this.#countByOwner.add(owner, 1);
      node.owner = owner;
    }
    const fromMs = node.atMs;
    noteNumbers(node, report, atMs);
    this.noteHeard(node, atMs);
    // Answers within less than a millisecond are no demand, and those of a first report have no
    // rate, since nobody knows the time that it covers; and yet somebody asked.
    const hasAsked = report.rps > 0 || report.latency.count > 0 || node.demand > 0;
    if (hasAsked) node.askedMs ??= atMs;
    return fromMs;
  }

  /** It was heard of, though not by its numbers: its lease begins anew. */
  noteHeard(node: FeedbackNode, atMs: number): void {
    if (atMs > node.heardMs) node.heardMs = atMs;
  }

  /** Those whose lease is over; they are forgotten. */
  takeGone(nowMs: number): readonly FeedbackNode[] {
    const gone: FeedbackNode[] = [];
    for (const node of this.#nodes.values()) {
      if (nowMs - node.heardMs >= this.#times.nodeLeaseMs) gone.push(node);
    }
    for (const { nodeId, owner } of gone) {
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

  #meet(nodeId: string, owner: string | undefined, heardMs: number): FeedbackNode {
    const node: FeedbackNode = {
      nodeId,
      owner,
      heardMs,
      askedMs: undefined,
      atMs: Number.NEGATIVE_INFINITY,
      inFlight: 0,
      rps: 0,
      overflowPerSecond: 0,
      demand: 0,
      highDemand: undefined,
      entry: undefined,
    };
    this.#countByOwner.add(owner, 1);
    this.#nodes.set(nodeId, node);
    return node;
  }
}

/** Whether a report is of an Envoy that is another identity's, to some other replica. */
export function isOfAnother(known: FeedbackNode | undefined, { owner }: NodeReport): boolean {
  return known?.owner !== undefined && known.owner !== owner;
}

function noteNumbers(node: FeedbackNode, report: NodeReport, atMs: number): void {
  const { inFlight, rps, highInFlight } = report;
  const sinceMs = atMs - node.atMs;
  const kept = demandKeptPerSecond ** (sinceMs / 1_000);
  node.demand = Math.max(report.demand ?? demandOf(report), node.demand * kept);
  if (highInFlight === undefined) node.highDemand = undefined;
  else {
    const highKept = highDemandKeptPerSecond ** (sinceMs / 1_000);
    node.highDemand = Math.max(highInFlight, (node.highDemand ?? 0) * highKept);
  }
  // Of an Envoy's first report nobody knows the time: it is taken to be one second's.
  const seconds = Number.isFinite(sinceMs) ? sinceMs / 1_000 : 1;
  node.overflowPerSecond = report.overflowCount / seconds;
  node.atMs = atMs;
  node.inFlight = inFlight;
  node.rps = rps;
}

/** What an Envoy would have in work at once if it might; see `FeedbackNodes`. */
export function demandOf({ inFlight, rps, latency, overflowCount }: NodeReport): number {
  const { count, sumMs } = latency;
  const inWork = Math.max(inFlight, count === 0 ? 0 : (rps / 1_000) * (sumMs / count));
  const refusedRatio = overflowCount / Math.max(1, count);
  // Where nobody told how many were served, one in work at least stands for those who were refused.
  return (
    Math.max(inWork, Math.min(1, overflowCount)) * (1 + Math.min(refusedRatioMax, refusedRatio))
  );
}
