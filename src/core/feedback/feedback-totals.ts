import type { ServiceRemainder } from "./feedback.js";
import type { FeedbackNode, FeedbackNodes } from "./feedback-nodes.js";

/** Envoys of one service and their shares, at one time. */
interface TotalsView {
  readonly nodes: FeedbackNodes;
  /** The limit of the service: a whole number from 1. */
  readonly limit: number;
  readonly nowMs: number;
}

/** The sums over all Envoys of one service. */
export interface FleetTotals {
  /** Requests in flight, of Envoys with current reports. */
  readonly inFlight: number;
  /** The same, with the whole share of each Envoy that was full or that is silent. */
  readonly inUse: number;
  /** Requests that end per second, of Envoys with current reports. */
  readonly rps: number;
  /** The same, with the last values of silent Envoys. */
  readonly allRps: number;
  /** Requests that breakers refuse per second, of Envoys with current reports. */
  readonly overflowPerSecond: number;
  /** The time of the oldest current report. */
  readonly fromMs: number;
  /**
   * Number of Envoys with requests, of those with current reports. Each keeps a permit, even during
   * a probe, because no share is 0.
   */
  readonly askingCount: number;
  /** Whether Envoys out of reach have so much that a lower limit would show no effect. */
  readonly isPartial: boolean;
}

/** Mean number of concurrent requests from which an Envoy counts as having requests. */
const askingDemandMin = 0.5;

/** Maximum part of a limit that may be out of reach during a probe, whose level is 0.4 or more. */
const unheardRatioMax = 0.1;

/**
 * Adds up the reports of Envoys. A silent Envoy may use its share, so its share counts as in use.
 * Otherwise the service would seem to need less than it does. A silent Envoy that acknowledges
 * layers follows a lower limit. An Envoy that sends nothing does not follow, or has stopped.
 *
 * Example: a limit of 40, and four Envoys with a share of 10, of which 9 are in flight at each. The
 * fourth Envoy is silent: 27 in flight and 37 in use. The totals are partial unless the fourth
 * acknowledges its layers.
 */
export function fleetTotals({ nodes, limit, nowMs }: TotalsView): FleetTotals {
  let inFlight = 0;
  let inUse = 0;
  let rps = 0;
  let silentRps = 0;
  let overflowPerSecond = 0;
  let silentUse = 0;
  let unheardUse = 0;
  let fromMs = nowMs;
  let askingCount = 0;
  for (const node of nodes.all) {
    const share = node.entry?.share ?? 0;
    if (!nodes.isFresh(node, nowMs)) {
      silentUse += share;
      silentRps += node.rps;
      if (!nodes.isHeard(node, nowMs)) unheardUse += share;
      continue;
    }
    inFlight += node.inFlight;
    rps += node.rps;
    overflowPerSecond += node.overflowPerSecond;
    fromMs = Math.min(fromMs, node.atMs);
    inUse += inUseOf(node);
    if (node.demand >= askingDemandMin) askingCount += 1;
  }
  return {
    inFlight,
    inUse: Math.max(inUse, Math.min(limit, inUse + silentUse)),
    rps,
    allRps: rps + silentRps,
    overflowPerSecond,
    fromMs,
    askingCount,
    isPartial: unheardUse > unheardRatioMax * limit,
  };
}

/**
 * Permits in use at an Envoy with a current report. If it refuses requests, its whole share counts:
 * one report per second may miss the moment in which all permits were in use.
 */
export function inUseOf({ inFlight, overflowPerSecond, entry }: FeedbackNode): number {
  return Math.max(inFlight, overflowPerSecond > 0 ? (entry?.share ?? 0) : 0);
}

/** `totals`, plus the remainders that rounding removed from the reports. */
export function withRemainders(
  totals: FleetTotals,
  remainders: Iterable<ServiceRemainder>,
): FleetTotals {
  let inFlight = 0;
  let rps = 0;
  for (const remainder of remainders) {
    inFlight += remainder.inFlight;
    rps += remainder.rps;
  }
  return {
    ...totals,
    inFlight: Math.max(0, totals.inFlight + inFlight),
    inUse: Math.max(0, totals.inUse + inFlight),
    rps: Math.max(0, totals.rps + rps),
    allRps: Math.max(0, totals.allRps + rps),
  };
}
