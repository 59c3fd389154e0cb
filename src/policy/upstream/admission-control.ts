import type { Block } from "../text/block.js";
import { type DurationBounds, type NumberBounds, percentBounds } from "../text/quantities.js";
import { retryBounds } from "./circuit-breakers.js";
import { defaultAdmissionControl } from "./default-upstream.js";
import { protectionTimes } from "./local-rate-limit.js";
import type { AdmissionControlPolicy } from "./upstream-policy.js";
import { admissionControlShape } from "./upstream-shapes.js";

/** The steepest answer to failures. */
const aggressionMax = 1_000;

/** The bounds of `aggression`: below 1 Envoy takes it for 1. */
export const aggressionBounds: NumberBounds = { min: 1, max: aggressionMax };

/** The bounds of `successRateThreshold`: Envoy refuses a threshold below 1 %. */
export const successBounds: NumberBounds = { ...percentBounds, min: 1 };

/** The longest window of samples: an hour. */
export const samplingMsMax = 3_600_000;

/** The bounds of `samplingWindow`. */
export const samplingBounds: DurationBounds = { minMs: 1_000, maxMs: samplingMsMax };

/** Reads `admissionControl` of a service or of `proxies`; as `readAdaptiveConcurrency` does. */
export function readAdmissionControl(
  parent: Block,
  whole: AdmissionControlPolicy | undefined,
): AdmissionControlPolicy | undefined {
  const block = parent.blockOrOff("admissionControl", admissionControlShape);
  if (block === "off") return undefined;
  if (block === undefined) return whole;
  const base = whole ?? defaultAdmissionControl;
  const samplingWindowMs = block.durationMs(
    "samplingWindow",
    base.samplingWindowMs,
    samplingBounds,
  );
  if (samplingWindowMs % 1_000 !== 0) {
    const message = "a sampling window is of whole seconds";
    block.report("samplingWindow", { id: "HG141", message, expected: "whole seconds, as 30s" });
  }
  return {
    aggression: block.number("aggression", base.aggression, aggressionBounds),
    successRateThresholdPercent: block.number(
      "successRateThreshold",
      base.successRateThresholdPercent,
      successBounds,
    ),
    samplingWindowMs,
    requestsPerSecondMin: block.whole(
      "minRequestsPerSecond",
      base.requestsPerSecondMin,
      retryBounds,
    ),
    rejectPercentMax: block.number("maxRejectPercent", base.rejectPercentMax, percentBounds),
    when: block.choice("when", { usual: base.when, words: protectionTimes }),
  };
}
