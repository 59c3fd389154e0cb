import { Tally } from "../collections/tally.js";
import type { NodeReport } from "./feedback.js";
import { type LoopTimes, loopNodesMax, loopSparePlaces } from "./feedback-settings.js";
import type { ShareEntry } from "./share-ledger.js";

/** Reports whose times are closer than this are one report that came twice, in milliseconds. */
export const reportGapMsMin = 100;

/** Estimated part of a demand that remains after a second with a lower one. */
const demandKeptPerSecond = 0.6;

/**
 * The same at HIGH, where demand is low: with two requests in the mean, one sample a second finds
 * none once in seven times, and the requests that would be refused for that are critical.
 */
const highDemandKeptPerSecond = 0.85;

/** Maximum ratio of refused to served requests that counts as demand. */
const refusedRatioMax = 100;

/** One Envoy of one service: its last report, and its share. */
export interface FeedbackNode {
  readonly nodeId: string;
  /** As in `NodeReport`. Undefined: not known. */
  owner: string | undefined;
  /** When its lease was last renewed. */
  heardMs: number;
  /** When it first had requests for the service; undefined: it never had any. */
  askedMs: number | undefined;
  /** Time of its numbers. Minus infinity: it has not reported since this leader began. */
  atMs: number;
  inFlight: number;
  rps: number;
  /** Requests per second that it refused because of its share. If there are any, it was full. */
  overflowPerSecond: number;
  /** Requests that it would have in flight without a limit: at least 0, with fractions. */
  demand: number;
  /** Those of them at HIGH. Undefined if it does not report them. */
  highDemand: number | undefined;
  /** Its share, and what it may hold. Undefined before its first share. */
  entry: ShareEntry | undefined;
}

/**
 * The last reports of the Envoys of one service. Reports may be lost, late or duplicate.
 *
 * Demand is the number in flight or, by Little's law, what served requests took. If Envoy refused
 * requests, it is multiplied by the ratio of all requests to the served ones:
 *
 * ```
 * demand = max(inFlight, rps * latency) * (1 + refused / served)
 * ```
 *
 * A lower demand is adopted in steps, by a factor of 0.6 per second, since one sample a second
 * misses what was in between.
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

  /** Number of Envoys that have a part of the limit: heard of within their lease. */
  get count(): number {
    return this.#nodes.size;
  }

  /** Number of reports of Envoys for which there was no place. */
  get crowdedOutCount(): number {
    return this.#crowdedOutCount;
  }

  /** Returns an Envoy that was heard of within its lease. */
  find(nodeId: string): FeedbackNode | undefined {
    return this.#nodes.get(nodeId);
  }

  /** Adds an Envoy of a snapshot. Its lease begins now, and it counts as having had requests. */
  restore(nodeId: string, nowMs: number): FeedbackNode {
    const node = this.#meet(nodeId, undefined, nowMs);
    node.askedMs = Number.NEGATIVE_INFINITY;
    return node;
  }

  /** Reports whether its last numbers are still current. */
  isFresh({ atMs }: FeedbackNode, nowMs: number): boolean {
    return nowMs - atMs <= this.#times.numbersMsMax;
  }

  /** Reports whether it was heard of recently, by its numbers or by what it holds. */
  isHeard({ heardMs }: FeedbackNode, nowMs: number): boolean {
    return nowMs - heardMs <= this.#times.numbersMsMax;
  }

  /**
   * Records a report.
   *
   * @param known the result of `find`, which the caller may have already
   * @returns when the period of the report begins; minus infinity for an Envoy's first report, of
   *   which it is not known; undefined for a report without news
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
    // Responses within less than a millisecond make no demand, and a first report has no rate,
    // since its period is unknown. In both cases, there were requests nevertheless.
    const hasAsked = report.rps > 0 || report.latency.count > 0 || node.demand > 0;
    if (hasAsked) node.askedMs ??= atMs;
    return fromMs;
  }

  /** Renews the lease of an Envoy that was heard of, also without its numbers. */
  noteHeard(node: FeedbackNode, atMs: number): void {
    if (atMs > node.heardMs) node.heardMs = atMs;
  }

  /** Forgets the Envoys whose lease is over, and returns them. */
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

  /** Whether there is a place: the names of one identity never exclude another identity. */
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

/** Reports whether a report is of an Envoy that is known under another identity. */
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
  // The period of an Envoy's first report is not known: one second is assumed.
  const seconds = Number.isFinite(sinceMs) ? sinceMs / 1_000 : 1;
  node.overflowPerSecond = report.overflowCount / seconds;
  node.atMs = atMs;
  node.inFlight = inFlight;
  node.rps = rps;
}

/** Returns the requests that an Envoy would have in flight without a limit; see `FeedbackNodes`. */
export function demandOf({ inFlight, rps, latency, overflowCount }: NodeReport): number {
  const { count, sumMs } = latency;
  const inWork = Math.max(inFlight, count === 0 ? 0 : (rps / 1_000) * (sumMs / count));
  const refusedRatio = overflowCount / Math.max(1, count);
  // If the number of served requests is not known, refused ones count as one in flight at least.
  return (
    Math.max(inWork, Math.min(1, overflowCount)) * (1 + Math.min(refusedRatioMax, refusedRatio))
  );
}
