import type { GateState } from "../admission/gate.js";

/** What one Envoy reports about one service since its last report, as one replica received it. */
export interface NodeReport {
  /** The Envoy's own name for itself. It is external input, so it reaches no label and no log. */
  readonly nodeId: string;
  /** Its owner by its certificate, as in `Peer`. Undefined: it has none, or it is not known yet. */
  readonly owner?: string | undefined;
  readonly service: string;
  /**
   * Time of its newest numbers, on the monotonic clock of the reader, in milliseconds. Between
   * machines it is sent as an age: wall clocks are never compared.
   */
  readonly atMs: number;
  /** Requests in flight at the upstream now: a whole number from 0. */
  readonly inFlight: number;
  /** Those of them at Envoy's priority HIGH. Undefined if the Envoy does not report them. */
  readonly highInFlight?: number | undefined;
  /** Requests that ended per second, without those that Envoy itself refused. */
  readonly rps: number;
  readonly latency: NodeLatency;
  /**
   * Requests that it would have in flight without a limit, as `demandOf` computes it: at least 0,
   * with fractions. Undefined: the reader computes it from the other numbers.
   */
  readonly demand?: number | undefined;
  /** Requests that the upstream failed, without those that Envoy refused. */
  readonly errorCount: number;
  /** Requests that Envoy dropped before it chose a host, including those its breakers refused. */
  readonly dropCount: number;
  /** Requests that a circuit breaker refused. */
  readonly overflowCount: number;
  /**
   * The largest share that this node may still enforce: acknowledged last, or sent and neither
   * acknowledged nor expired. Its configured default if its share has expired. 0: the reporter
   * sends it no layers, and does not know.
   */
  readonly held: number;
  /**
   * Time of `held`, on the clock of `atMs`. Undefined: `atMs`. An Envoy may get its layers from one
   * replica and report its numbers to another, so the two times differ.
   */
  readonly heldAtMs?: number | undefined;
  /** Of the filter `adaptive_concurrency`. Undefined if the node has none, or reports none. */
  readonly gradientFacts?: GradientFacts | undefined;
}

/** Measurements of several Envoys of a service in about the same period, added up. */
export interface ServiceSamples extends Pick<NodeReport, "service" | "latency" | "errorCount"> {
  /** Earliest start of what they measured, on the clock of the reader. */
  readonly fromMs: number;
}

/**
 * How much the numbers of a service's Envoys exceed the reported ones, since the reporter rounded
 * each. Negative: they are lower.
 */
export interface ServiceRemainder
  extends Pick<NodeReport, "service" | "atMs" | "inFlight" | "rps"> {
  /** The reporter. Its next remainder replaces this one. */
  readonly source: string;
}

/** Latencies in the period of a report, from the difference of two histograms. */
export interface NodeLatency {
  /** Requests that were timed; 0: there is nothing to learn. */
  readonly count: number;
  readonly sumMs: number;
  /** Median, in milliseconds. Undefined if the histogram does not contain it. */
  readonly p50?: number | undefined;
  /** Minimum, in milliseconds. Undefined if the histogram does not contain it. */
  readonly minMs?: number | undefined;
}

/**
 * What Envoy's own gradient controller reports.
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

/** The decisions of the leader for all services and Envoys. Never modified. */
export interface ShareSnapshot {
  /** The leader's term. A higher one wins, whatever the version. */
  readonly term: number;
  readonly leaderId: string;
  /** Grows with each snapshot of a term. */
  readonly version: number;
  /** By service. */
  readonly services: ReadonlyMap<string, ServiceShares>;
}

/** The limit of one service, and its shares. */
export interface ServiceShares {
  /** Maximum number of requests in flight, over the fleet: a whole number from 1. */
  readonly limit: number;
  /**
   * By node. Their sum is at most the limit, but an identity with more live nodes than its part of
   * the limit has one permit for each of them, or two if routes use HIGH, too.
   */
  readonly shares: ReadonlyMap<string, NodeShare>;
  /** Part of requests that should be refused before they reach the service, 0 to 1. */
  readonly rejectRatio: number;
  readonly gate: GateState;
  readonly facts: ServiceFacts;
}

/** The share of one Envoy at one service, in whole numbers. */
export interface NodeShare {
  /** At Envoy's priority DEFAULT; at least 1, since 0 would refuse everything. */
  readonly default: number;
  /** At Envoy's priority HIGH. 0: not set. */
  readonly high: number;
}

/** Returns the part of a service's limit that Envoys reserve for their priority HIGH. */
export function reservedHighOf({ shares }: Pick<ServiceShares, "shares">): number {
  return [...shares.values()].reduce((sum, { high }) => sum + high, 0);
}

/** The numbers behind the limit, for people. */
export interface ServiceFacts {
  /** Over the fleet. */
  readonly inFlight: number;
  readonly rps: number;
  /**
   * Requests per second that Envoys' breakers refused, at both of Envoy's priorities together. They
   * have no classes, and are not included in `rps`.
   */
  readonly overflowPerSecond: number;
  /** Undefined until the first window with latencies. */
  readonly rttMs?: number;
  readonly minRttMs?: number;
  readonly gradient?: number;
}
