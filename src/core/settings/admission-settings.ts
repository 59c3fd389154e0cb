/**
 * What a policy may say about admission to one service, as the laws take it. Plain data in their
 * own units, so that it may cross threads; texts become it in `src/policy`.
 */

import type { RuleDisclosure } from "../limits/limit.js";

/** Who goes first, in that order. */
export const priorities = ["critical", "high", "normal", "low"] as const;

/** A request's class. */
export type Priority = (typeof priorities)[number];

/** From which load a class is refused. */
export interface ShedThreshold {
  /** Load ratio from which some callers of the class are refused, the same ones each time. */
  readonly softRatio: number;
  /** Load ratio from which all of the class are refused; at least `softRatio`. */
  readonly hardRatio: number;
}

/** Thresholds by class, falling with it. */
export type ShedThresholds = Readonly<Record<Priority, ShedThreshold>>;

/** When a request's remaining time is too short. */
export interface DeadlineSettings {
  /** Less than this left: refused at once. Default 5. */
  readonly minRemainingMs: number;
  /** Kept back of the budget that goes on to the upstream. Default 10. */
  readonly marginMs: number;
  /** A request header with the time left, in milliseconds, beside Envoy's and gRPC's own. */
  readonly header: string | undefined;
}

/** In which order waiting requests are let in. */
export type QueueOrder = "priority" | "fifo" | "newestFirstUnderOverload";

/** A bounded queue in front of the permits. */
export interface QueueSettings {
  /** The most that wait. Default 100. */
  readonly sizeMax: number;
  /** The longest that one waits. Default 2,000. */
  readonly waitMsMax: number;
  /** Default "priority". */
  readonly order: QueueOrder;
  /** CoDel's test on how long heads have waited; undefined switches it off. */
  readonly codel: CodelSettings | undefined;
}

/** Source: RFC 8289, "Controlled Delay Active Queue Management". */
export interface CodelSettings {
  /** The sojourn time that may stand. Default 100 for requests, where the RFC has 5 for packets. */
  readonly targetMs: number;
  /** How long it may stand above the target before one is dropped. Default 1,000. */
  readonly intervalMs: number;
}

/** A duration, or a multiple of the measured service time. */
export type WaitBound =
  | { readonly kind: "duration"; readonly ms: number }
  | { readonly kind: "serviceTimes"; readonly multiple: number };

/** A logistic curve over the estimated wait. */
export interface SigmoidSettings {
  /** The estimated wait at which one half is admitted. */
  readonly midpoint: WaitBound;
  /** Steepness per second of wait. */
  readonly slopePerSecond: number;
}

/** What may be admitted by the wait it must expect. */
export interface EstimatedWaitSettings {
  /** Refused from this wait on; undefined: no cap. */
  readonly max: WaitBound | undefined;
  /** Admitted with a falling probability; undefined: no curve. */
  readonly sigmoid: SigmoidSettings | undefined;
}

/** A gate over the sigmoid's reject probability. */
export interface GateSettings {
  /** Below it everything passes. Default 0.4; less than `closeAboveRatio`. */
  readonly openBelowRatio: number;
  /** Above it nothing passes. Default 0.8. */
  readonly closeAboveRatio: number;
  /** The share that passes at `closeAboveRatio`. Default 0.1. */
  readonly passAtCloseRatio: number;
}

/** Throttling as a client would do it. Source: Google SRE book, "Handling Overload". */
export interface ThrottleSettings {
  /** How many requests an accept stands for, at least 1. Default 2. */
  readonly k: number;
  /** Whether each caller has counts of its own beside the service's. */
  readonly per: "service" | "caller";
  /** How fast both counts forget: the time constant. Default 30,000. */
  readonly memoryMs: number;
}

/** Which readings make a service's load, and from where they count as full. */
export interface LoadSettings {
  /** ORCA `cpu_utilization` (or `application_utilization`) that is a load of 1. Default 0.85. */
  readonly orcaCpuRatio: number | undefined;
  /** ORCA `mem_utilization` that is a load of 1. Default 0.90. */
  readonly orcaMemoryRatio: number | undefined;
  /** Upstream latency over its baseline that is a load of 1; undefined: not looked at. */
  readonly latencyMultiple: number | undefined;
  /** Share of failed requests that is a load of 1; undefined: not looked at. */
  readonly errorRatio: number | undefined;
  /** Time in the queue that is a load of 1; undefined: not looked at. */
  readonly queueWaitMs: number | undefined;
  /** Reading of the service's signal that is a load of 1; left out or undefined: not looked at. */
  readonly signalReading?: number | undefined;
  /** How readings become one load. Default "max". */
  readonly combine: "max" | "mean";
}

/** How refusals look. */
export interface RejectSettings {
  /** The least `retry-after`, in whole seconds from 1. Default 1. */
  readonly retryAfterSecondsMin: number;
  /** Added at most, as a share of it; upwards only. Default 0.5. */
  readonly retryAfterJitterRatio: number;
  /** HTTP status instead of the cause's own, by cause. */
  readonly statusByCause: Readonly<Partial<Record<RefusalCause, number>>>;
  /** Where they name the service and the cause. Absent: `defaultDisclosure`. */
  readonly disclosure?: RuleDisclosure;
}

/** Why a request is refused; also a metric's label. */
export const refusalCauses = [
  "rateLimit",
  "priority",
  "queueFull",
  "queueTimeout",
  "waitCap",
  "sigmoid",
  "concurrency",
  "load",
  "gate",
  "throttle",
  "deadline",
  "ownOverload",
] as const;

/** One of `refusalCauses`. */
export type RefusalCause = (typeof refusalCauses)[number];

/** Blocks of a policy that may decide and count without refusing. */
export type AdmissionBlock =
  | "priority"
  | "deadline"
  | "permits"
  | "queue"
  | "estimatedWait"
  | "gate"
  | "throttle"
  | "load"
  | "rateLimit";

/** Bounds of a concurrency limit, in permits. */
export interface LimitBounds {
  /** Where a law starts, within the others. Default 50. */
  readonly initial: number;
  /** At least 1. Default 1. */
  readonly min: number;
  /** Default 1,000. */
  readonly max: number;
}
