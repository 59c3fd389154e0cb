import type { Style } from "../../app/base/style.js";

/** Counts since the start. All of them only grow, so that a period is a difference. */
export interface CallerCounts {
  readonly requests: number;
  /** Critical requests that have ended. */
  readonly critical: number;
  readonly attempts: number;
  /** Answered in time. */
  readonly served: number;
  readonly servedCritical: number;
  /** Work of those requests, in milliseconds of a worker. */
  readonly servedWorkMs: number;
  /** Work of all requests, in milliseconds of a worker. */
  readonly workMs: number;
  /** Given up in the caller: not sent, or not retried. */
  readonly refusedHere: number;
  /** Ended by a response that refuses or fails. */
  readonly refused: number;
  /** Not answered within the caller's patience. */
  readonly late: number;
}

/** Counts of the service. Milliseconds are those of one worker. */
export interface ServiceCounts {
  readonly arrived: number;
  /** Time in which workers worked. */
  readonly busyMs: number;
  /** Part of it for callers that had left before its end. */
  readonly wastedMs: number;
  /** Time for which workers existed. */
  readonly capacityMs: number;
}

/** Both counts at the same time. */
export interface LayersCounts {
  readonly caller: CallerCounts;
  readonly service: ServiceCounts;
}

/** Figures of a period of a run. Ratios are from 0 to 1. */
export interface LayersFigures {
  /** Work answered in time, as a part of what was possible and requested. */
  readonly goodputRatio: number;
  /** Part of critical requests that were answered in time. */
  readonly criticalRatio: number;
  readonly attemptsPerRequest: number;
  /** Work for callers that had left, as a part of all work. */
  readonly wastedRatio: number;
  readonly requests: number;
  readonly served: number;
  readonly refused: number;
  readonly late: number;
}

/** Counts of a caller that has sent nothing. */
export const noCallerCounts: CallerCounts = {
  requests: 0,
  critical: 0,
  attempts: 0,
  served: 0,
  servedCritical: 0,
  servedWorkMs: 0,
  workMs: 0,
  refusedHere: 0,
  refused: 0,
  late: 0,
};

/** Returns the figures of the period between two counts. */
export function figuresOf(from: LayersCounts, to: LayersCounts): LayersFigures {
  const caller = (name: keyof CallerCounts): number => to.caller[name] - from.caller[name];
  const service = (name: keyof ServiceCounts): number => to.service[name] - from.service[name];
  const possibleMs = Math.min(caller("workMs"), service("capacityMs"));
  return {
    goodputRatio: ratio(caller("servedWorkMs"), possibleMs),
    criticalRatio: ratio(caller("servedCritical"), caller("critical")),
    attemptsPerRequest: ratio(caller("attempts"), caller("requests")),
    wastedRatio: ratio(service("wastedMs"), service("busyMs")),
    requests: caller("requests"),
    served: caller("served"),
    refused: caller("refusedHere") + caller("refused"),
    late: caller("late"),
  };
}

/** Returns a ratio. Example: 1 of 4 is 0.25; 0 if the whole is 0. */
function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

/** Example: `12 s   goodput 99.1 %   critical 100.0 %   1.02 attempts a request   wasted 0.0 %`. */
export function renderFigures(seconds: number, figures: LayersFigures, style: Style): string {
  const { goodputRatio, criticalRatio, attemptsPerRequest, wastedRatio } = figures;
  const cells = [
    `goodput ${percent(goodputRatio)}`,
    `critical ${percent(criticalRatio)}`,
    `${attemptsPerRequest.toFixed(2)} attempts a request`,
    `wasted ${percent(wastedRatio)}`,
  ];
  return `${style.dim(`${String(seconds).padStart(5)} s`)}   ${cells.join("   ")}`;
}

/** Example: 0.5 is `50.0 %`. At most 100 %: a period may include work from the previous one. */
function percent(ratio: number): string {
  return `${(100 * Math.min(1, ratio)).toFixed(1)} %`;
}
