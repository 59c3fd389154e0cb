import type { Block } from "../text/block.js";
import { type DurationBounds, type NumberBounds, percentBounds } from "../text/quantities.js";
import { thresholdBounds } from "./circuit-breakers.js";
import {
  defaultFailurePercentage,
  defaultOutlierDetection,
  defaultSuccessRate,
} from "./default-upstream.js";
import type {
  FailurePercentagePolicy,
  OutlierDetectionPolicy,
  SuccessRatePolicy,
} from "./upstream-policy.js";
import {
  failurePercentageShape,
  outlierDetectionShape,
  successRateShape,
} from "./upstream-shapes.js";

/** The longest time that a host may be out, or that hosts are looked at: a day. */
export const ejectionTimeMsMax = 86_400_000;

/** The bounds of `interval`, `baseEjectionTime` and `maxEjectionTime`. */
export const ejectionTimeBounds: DurationBounds = { minMs: 1, maxMs: ejectionTimeMsMax };

/** The most standard deviations below the mean. Envoy counts them in thousandths. */
const deviationsMax = 1_000;

/** The bounds of `deviations`. */
export const deviationsBounds: NumberBounds = { min: 0, max: deviationsMax, isMinExcluded: true };

/** The bounds of `threshold`: at 0 every host would be out. */
export const failureBounds = { min: 1, max: 100 } as const;

/** Reads `outlierDetection` of a service; undefined where it is off. */
export function readOutlierDetection(service: Block): OutlierDetectionPolicy | undefined {
  const block = service.blockOrOff("outlierDetection", outlierDetectionShape);
  if (block === "off") return undefined;
  const usual = defaultOutlierDetection;
  if (block === undefined) return usual;
  const baseEjectionMs = block.durationMs(
    "baseEjectionTime",
    usual.baseEjectionMs,
    ejectionTimeBounds,
  );
  const writtenMax = block.durationMs("maxEjectionTime", undefined, ejectionTimeBounds);
  if (writtenMax !== undefined && writtenMax < baseEjectionMs) {
    const message = "the longest ejection is shorter than the first one";
    block.refuseOrder(["maxEjectionTime"], message, "at least baseEjectionTime");
  }
  return {
    consecutive5xx: block.whole("consecutive5xx", usual.consecutive5xx, thresholdBounds),
    consecutiveGatewayFailures: block.whole(
      "consecutiveGatewayFailure",
      usual.consecutiveGatewayFailures,
      thresholdBounds,
    ),
    intervalMs: block.durationMs("interval", usual.intervalMs, ejectionTimeBounds),
    baseEjectionMs,
    ejectionMsMax: writtenMax ?? Math.max(usual.ejectionMsMax, baseEjectionMs),
    ejectionPercentMax: block.whole("maxEjectionPercent", usual.ejectionPercentMax, percentBounds),
    successRate: readSuccessRate(block),
    failurePercentage: readFailurePercentage(block),
    localOriginFailures: block.whole("consecutiveLocalOriginFailure", undefined, thresholdBounds),
  };
}

function readFailurePercentage(detection: Block): FailurePercentagePolicy | undefined {
  const block = detection.block("failurePercentage", failurePercentageShape);
  const usual = defaultFailurePercentage;
  return (
    block && {
      thresholdPercent: block.whole("threshold", usual.thresholdPercent, failureBounds),
      hostsMin: block.whole("minHosts", usual.hostsMin, thresholdBounds),
      requestsMin: block.whole("minRequests", usual.requestsMin, thresholdBounds),
    }
  );
}

function readSuccessRate(detection: Block): SuccessRatePolicy | undefined {
  const block = detection.block("successRate", successRateShape);
  return (
    block && {
      hostsMin: block.whole("minHosts", defaultSuccessRate.hostsMin, thresholdBounds),
      requestsMin: block.whole("minRequests", defaultSuccessRate.requestsMin, thresholdBounds),
      deviations: block.number("deviations", defaultSuccessRate.deviations, deviationsBounds),
    }
  );
}
