import type { GateState } from "../admission/gate.js";

/** What one Envoy did for one service in the time since its last report, as one replica saw it. */
export interface NodeReport {
  /** The Envoy's own name for itself; made elsewhere, so it reaches no label and no log. */
  readonly nodeId: string;
  /** Whose it is by its certificate, as in `Peer`; undefined: it has none, or nobody knows yet. */
  readonly owner?: string | undefined;
  readonly service: string;
  /**
   * When the newest of its numbers was true, on the monotonic clock of whoever reads it, in
   * milliseconds. It crosses machines as an age: wall clocks are never compared.
   */
  readonly atMs: number;
  /** Requests in work at the upstream, now: a whole number from 0. */
  readonly inFlight: number;
  /** Of them, those at Envoy's priority HIGH; undefined where the Envoy does not say. */
  readonly highInFlight?: number | undefined;
  /** Requests that ended a second; those that Envoy refused itself are not among them. */
  readonly rps: number;
  readonly latency: NodeLatency;
  /**
   * Requests that it would have in work at once if it might, as `demandOf` has it: from 0, with
   * fractions. Undefined: whoever reads computes it from the other numbers.
   */
  readonly demand?: number | undefined;
  /** Requests that the upstream failed: no refusal of Envoy's is among them. */
  readonly errorCount: number;
  /** Requests that Envoy dropped before it chose a host, its breakers' refusals among them. */
  readonly dropCount: number;
  /** Requests that a circuit breaker refused. */
  readonly overflowCount: number;
  /**
   * The largest share that this node may still enforce: acknowledged last, or sent and neither
   * acknowledged nor expired; its configured default when the time of what it had ran out. 0: who
   * reports has no layers to give to it, and cannot tell.
   */
  readonly held: number;
  /**
   * When `held` was true, on the same clock as `atMs`; undefined: at `atMs`. An Envoy may have its
   * layers from one replica and tell its numbers to another one, so the two times differ.
   */
  readonly heldAtMs?: number | undefined;
  /** Of the filter `adaptive_concurrency`; undefined where the node has none, or says nothing. */
  readonly gradientFacts?: GradientFacts | undefined;
}

/** What several Envoys of a service measured in about the same time, added up. */
export interface ServiceSamples extends Pick<NodeReport, "service" | "latency" | "errorCount"> {
  /** When what they counted began at the earliest, on the clock of whoever reads it. */
  readonly fromMs: number;
}

/**
 * By how much the numbers of Envoys of one service are above those that were told, as whoever told
 * them rounded each; negative: below.
 */
export interface ServiceRemainder
  extends Pick<NodeReport, "service" | "atMs" | "inFlight" | "rps"> {
  /** Who told them: its next remainder takes the place of this one. */
  readonly source: string;
}

/** Latencies of the time that a report is about, from the difference of two histograms. */
export interface NodeLatency {
  /** Requests that were timed; 0: there is nothing to learn. */
  readonly count: number;
  readonly sumMs: number;
  /** Undefined where the histogram does not say. */
  readonly p50?: number | undefined;
  /** The least, in milliseconds; undefined where the histogram does not say. */
  readonly minMs?: number | undefined;
}

/**
 * What Envoy's own gradient controller says of itself.
 *
 * Source: envoy.extensions.filters.http.adaptive_concurrency.v3, statistics of its controller.
 */
export interface GradientFacts {
  readonly concurrencyLimit: number;
  /** From 0.5 to 2. */
  readonly gradient: number;
  readonly minRttMs: number;
  readonly sampleRttMs: number;
  readonly burstQueueSize: number;
}

/** What the leader has decided for all services and Envoys; never changed once it is made. */
export interface ShareSnapshot {
  /** Of the leader's term: a higher one wins, whatever the version. */
  readonly term: number;
  readonly leaderId: string;
  /** Grows with each snapshot of an term. */
  readonly version: number;
  /** By service. */
  readonly services: ReadonlyMap<string, ServiceShares>;
}

/** What holds for one service. */
export interface ServiceShares {
  /** Requests that may be in work at once, over the fleet: a whole number from 1. */
  readonly limit: number;
  /**
   * By node. Their sum is at most the limit, but an identity with more live nodes than its part of
   * it has one for each of them; two where routes run at HIGH, too.
   */
  readonly shares: ReadonlyMap<string, NodeShare>;
  /** The share of requests that ought to be refused before they come here, 0 to 1. */
  readonly rejectRatio: number;
  readonly gate: GateState;
  readonly facts: ServiceFacts;
}

/** What one Envoy may have in work at one service, in whole numbers. */
export interface NodeShare {
  /** At Envoy's priority DEFAULT; at least 1, since 0 would refuse everything. */
  readonly default: number;
  /** At Envoy's priority HIGH; 0: nothing is said of it. */
  readonly high: number;
}

/** The part of a service's limit that Envoys keep for their priority HIGH. */
export function reservedHighOf({ shares }: Pick<ServiceShares, "shares">): number {
  return [...shares.values()].reduce((sum, { high }) => sum + high, 0);
}

/** What the limit was made of, for people. */
export interface ServiceFacts {
  /** Over the fleet. */
  readonly inFlight: number;
  readonly rps: number;
  /**
   * Requests that Envoys' breakers refused, at either of Envoy's priorities: those are counted
   * together, and know no classes. They are not among `rps`.
   */
  readonly overflowPerSecond: number;
  /** Undefined before the first window that taught something. */
  readonly rttMs?: number;
  readonly minRttMs?: number;
  readonly gradient?: number;
}
