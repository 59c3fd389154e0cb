import type { SigmoidSettings } from "../admission/estimated-wait.js";
import type { GateSettings } from "../admission/gate.js";
import type { ConcurrencySettings } from "../concurrency/concurrency-laws.js";

/** What the loop goes by for one service: plain data, so that it may be compared as text. */
export interface ServiceLoopSettings {
  readonly service: string;
  readonly law: ConcurrencySettings;
  /** Permits of the whole fleet, whatever the law says; undefined: the law alone. */
  readonly maxInFlight: number | undefined;
  /** What an Envoy lets into work without a share: its configured default, a whole number. */
  readonly configuredShare: number;
  /**
   * The part that Envoy's priority HIGH has of the demand, where Envoys do not say it themselves; 0
   * to 1. Undefined: the service has no routes at HIGH, and nothing is set aside for them.
   */
  readonly highRatio: number | undefined;
  /** The curve over the expected wait that makes the reject probability; undefined: none. */
  readonly sigmoid: SigmoidSettings | undefined;
  /** The gate over that probability; undefined: it is always open. */
  readonly gate: GateSettings | undefined;
}

/** Times that the loop goes by, in milliseconds. */
export interface LoopTimes {
  /** Numbers that are older say nothing of now. Default 3,500: three reports may be lost. */
  readonly numbersMsMax: number;
  /** How long a silent Envoy keeps its share: `ttlMs`, as long as it may be active. */
  readonly nodeLeaseMs: number;
  /** How long an Envoy keeps what nobody renews. Default `defaultLayerTtlMs`. */
  readonly ttlMs: number;
  /**
   * How long after a snapshot any replica may still hand out the one before. Default 2,000; whoever
   * hands snapshots out keeps to it.
   */
  readonly snapshotSpreadMs: number;
  /** An Envoy that holds more than its share for longer does not follow. Default 5,000. */
  readonly obeyMsMax: number;
}

/** How fast a fleet's limit may move, and what is too little to move for. */
export interface LimitPace {
  /** By how much of itself a limit may grow in a second, beside one permit. Default 1. */
  readonly growthRatioPerSecond: number;
  /** How much of itself a limit may lose in a second, below 1. Default 0.7: more than a probe. */
  readonly lossRatioPerSecond: number;
  /** A learning law's change by less than this part is no change. Default 0.05. */
  readonly hysteresisRatio: number;
}

/** How long an Envoy keeps a layer that nobody renews, in milliseconds. */
export const defaultLayerTtlMs = 15_000;

/** What holds where layers live that long. */
export function loopTimesFor(layerTtlMs: number): LoopTimes {
  return {
    numbersMsMax: 3_500,
    nodeLeaseMs: layerTtlMs,
    ttlMs: layerTtlMs,
    snapshotSpreadMs: 2_000,
    obeyMsMax: 5_000,
  };
}

/** What holds where nobody says otherwise. */
export const defaultLoopTimes: LoopTimes = loopTimesFor(defaultLayerTtlMs);

/** What holds where nobody says otherwise. */
export const defaultLimitPace: LimitPace = {
  growthRatioPerSecond: 1,
  lossRatioPerSecond: 0.7,
  hysteresisRatio: 0.05,
};

/** What an Envoy lets into work that was told nothing: `max_requests` of its circuit breakers. */
export const envoyShareDefault = 1_024;

/** The most services that a loop decides for; those above are left out. */
export const loopServicesMax = 1_000;

/** The most Envoys of one service; those above have no share. */
export const loopNodesMax = 10_000;

/** Places beyond these for Envoys of identities that have no more than as many. */
export const loopSparePlaces = 1_000;
