import type { ServiceRemainder } from "./feedback.js";
import type { FeedbackNode, FeedbackNodes } from "./feedback-nodes.js";

/** Envoys of one service and what they were given, at one time. */
interface TotalsView {
  readonly nodes: FeedbackNodes;
  /** Of the service: a whole number from 1. */
  readonly limit: number;
  readonly nowMs: number;
}

/** What the Envoys of one service do, added up. */
export interface FleetTotals {
  /** In work now, at those whose numbers are of now. */
  readonly inFlight: number;
  /** The same, with the whole shares of those who were full at some time, or are silent. */
  readonly inUse: number;
  /** Requests that end in a second, at those whose numbers are of now. */
  readonly rps: number;
  /** The same, with what those had last who are silent. */
  readonly allRps: number;
  /** Requests that Envoys' breakers refuse a second, at those whose numbers are of now. */
  readonly overflowPerSecond: number;
  /** When the oldest of what is of now was true. */
  readonly fromMs: number;
  /**
   * Envoys that have requests, at those whose numbers are of now. Each keeps a permit even in a
   * probe, since no share is 0.
   */
  readonly askingCount: number;
  /** Whether so much is at Envoys out of reach that a lower limit would not show what it does. */
  readonly isPartial: boolean;
}

/** Requests in work at once from which an Envoy has some nearly at any time. */
const askingDemandMin = 0.5;

/** The part of a limit that may be out of reach in a probe, which leaves 0.4 of it or more. */
const unheardRatioMax = 0.1;

/**
 * Adds up what Envoys do. Of one that is silent nobody knows, but its share may well be in use, as
 * a part of the limit: without it a service would seem to take less than it does, by as much as
 * Envoys have lost their way to tell. One that takes its layers all the same follows a lower limit;
 * one of which nothing is heard at all does not, or is dead.
 *
 * Example: a limit of 40, and four Envoys with 10 each, all in use, 9 of them just now at each. The
 * fourth is silent: 27 in flight, 40 in use, and partial unless its layers are acknowledged.
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
 * Permits in use at an Envoy whose numbers are of now: its whole share where it refuses requests,
 * since one look a second need not have met the moment at which all was in use.
 */
export function inUseOf({ inFlight, overflowPerSecond, entry }: FeedbackNode): number {
  return Math.max(inFlight, overflowPerSecond > 0 ? (entry?.share ?? 0) : 0);
}

/** `totals`, with what was rounded off the numbers of Envoys. */
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
