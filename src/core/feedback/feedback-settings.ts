import type { SigmoidSettings } from "../admission/estimated-wait.js";
import type { GateSettings } from "../admission/gate.js";
import type { ConcurrencySettings } from "../concurrency/concurrency-laws.js";

/** Settings of the loop for one service: plain data, so that it may be compared as text. */
export interface ServiceLoopSettings {
  readonly service: string;
  readonly law: ConcurrencySettings;
  /** Maximum permits of the whole fleet, whatever the algorithm says. Undefined: no maximum. */
  readonly maxInFlight: number | undefined;
  /** Requests that an Envoy admits without a share: its configured default, a whole number. */
  readonly configuredShare: number;
  /**
   * Part of the demand at Envoy's priority HIGH, if Envoys do not report it themselves, 0 to 1.
   * Undefined: the service has no routes at HIGH, and nothing is set aside for them.
   */
  readonly highRatio: number | undefined;
  /** The curve that gives the reject probability by the expected wait. Undefined: none. */
  readonly sigmoid: SigmoidSettings | undefined;
  /** The gate over that probability; undefined: it is always open. */
  readonly gate: GateSettings | undefined;
}

/** Times of the loop, in milliseconds. */
export interface LoopTimes {
  /** Maximum age of current numbers. Default 3,500: three reports may be lost. */
  readonly numbersMsMax: number;
  /** How long a silent Envoy keeps its share. Default `ttlMs`: as long as it may be active. */
  readonly nodeLeaseMs: number;
  /** How long an Envoy keeps a layer that is not renewed. Default `defaultLayerTtlMs`. */
  readonly ttlMs: number;
  /**
   * How long after a snapshot any replica may still hand out the one before. Default 2,000. The
   * replicas that hand out snapshots have to keep to it.
   */
  readonly snapshotSpreadMs: number;
  /** An Envoy that holds more than its share for longer does not obey. Default 5,000. */
  readonly obeyMsMax: number;
}

/** How fast a fleet's limit may change, and which changes are too small to apply. */
export interface LimitPace {
  /** Part of itself that a limit may grow by per second, besides one permit. Default 1. */
  readonly growthRatioPerSecond: number;
  /** Part of itself that a limit may lose per second, below 1. Default 0.7: more than a probe. */
  readonly lossRatioPerSecond: number;
  /** A change of a learning algorithm by less than this part is ignored. Default 0.05. */
  readonly hysteresisRatio: number;
}

/** How long an Envoy keeps a layer that is not renewed, in milliseconds. */
export const defaultLayerTtlMs = 15_000;

/** Returns the default times for a lifetime of layers. */
export function loopTimesFor(layerTtlMs: number): LoopTimes {
  return {
    numbersMsMax: 3_500,
    nodeLeaseMs: layerTtlMs,
    ttlMs: layerTtlMs,
    snapshotSpreadMs: 2_000,
    obeyMsMax: 5_000,
  };
}

/** Default times of the loop. */
export const defaultLoopTimes: LoopTimes = loopTimesFor(defaultLayerTtlMs);

/** Default pace of limits. */
export const defaultLimitPace: LimitPace = {
  growthRatioPerSecond: 1,
  lossRatioPerSecond: 0.7,
  hysteresisRatio: 0.05,
};

/** Requests that an Envoy admits by its own default: `max_requests` of its circuit breakers. */
export const envoyShareDefault = 1_024;

/** Maximum number of services of a loop. Those above are left out. */
export const loopServicesMax = 1_000;

/** Maximum number of Envoys of one service. Those above have no share. */
export const loopNodesMax = 10_000;

/** Places above `loopNodesMax` for Envoys of identities that have at most as many. */
export const loopSparePlaces = 1_000;
