import type { EstimatedWaitSettings } from "../../src/core/admission/estimated-wait.js";
import { defaultShedThresholds } from "../../src/core/admission/priority.js";
import type { QueueScenario } from "./queue-run.js";

/** The virtual-queue text's hard threshold: 30 s of expected wait. */
export const hardCap: EstimatedWaitSettings = {
  max: { kind: "duration", ms: 30_000 },
  sigmoid: undefined,
};

/** A curve that lets through as much as is served at 25 s, at one and a half times the capacity. */
export const sigmoid: EstimatedWaitSettings = {
  max: undefined,
  sigmoid: { midpoint: { kind: "duration", ms: 28_000 }, slopePerSecond: 0.23 },
};

/** One that is steeper, so that the queue depends less on how many come. */
export const steepSigmoid: EstimatedWaitSettings = {
  max: undefined,
  sigmoid: { midpoint: { kind: "duration", ms: 25_500 }, slopePerSecond: 0.6 },
};

/** The text's ten servers of a second, with more coming than they serve, who all wait. */
export function textOverload(
  arrivalsPerSecond: number,
  estimatedWait: EstimatedWaitSettings | undefined,
): QueueScenario {
  const unbounded = Number.POSITIVE_INFINITY;
  return {
    serverCount: 10,
    serviceMs: 1_000,
    arrivalsPerSecond,
    arrivals: "poisson",
    classRatios: {},
    queue: { sizeMax: unbounded, waitMsMax: unbounded, order: "fifo", codel: undefined },
    estimatedWait,
    gate: undefined,
    shedAt: undefined,
  };
}

/**
 * Twice what ten servers of 50 ms can do: a fifth of it critical, a fifth high, the rest evenly
 * normal and low.
 */
export function twofold(changes: Partial<QueueScenario> = {}): QueueScenario {
  return {
    serverCount: 10,
    serviceMs: 50,
    arrivalsPerSecond: 400,
    arrivals: "poisson",
    classRatios: { critical: 0.2, high: 0.2, normal: 0.3, low: 0.3 },
    queue: { sizeMax: 30, waitMsMax: 2_000, order: "priority", codel: undefined },
    estimatedWait: undefined,
    gate: undefined,
    shedAt: defaultShedThresholds,
    ...changes,
  };
}
