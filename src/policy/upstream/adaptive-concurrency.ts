import type { Block } from "../text/block.js";
import {
  type DurationBounds,
  percentBounds,
  permitBounds,
  positivePercentBounds,
} from "../text/quantities.js";
import { thresholdBounds } from "./circuit-breakers.js";
import { defaultAdaptiveConcurrency, defaultMinRtt } from "./default-upstream.js";
import type { AdaptiveConcurrencyPolicy } from "./upstream-policy.js";
import { adaptiveConcurrencyShape, minRttShape } from "./upstream-shapes.js";

/** The longest time between two limits or two measurements: an hour. */
export const measureMsMax = 3_600_000;

/** The bounds of intervals and of a fixed round trip. */
export const measureBounds: DurationBounds = { minMs: 1, maxMs: measureMsMax };

/**
 * Reads `adaptiveConcurrency` of a service or of `proxies`; undefined where it is off. What is
 * left out is as in `base`, and all of it is `whole` where the block itself is left out.
 */
export function readAdaptiveConcurrency(
  parent: Block,
  whole: AdaptiveConcurrencyPolicy | undefined,
): AdaptiveConcurrencyPolicy | undefined {
  const block = parent.blockOrOff("adaptiveConcurrency", adaptiveConcurrencyShape);
  if (block === "off") return undefined;
  if (block === undefined) return whole;
  const base = whole ?? defaultAdaptiveConcurrency;
  const writtenMax = block.whole("maxLimit", undefined, permitBounds);
  const writtenMin = block.whole("minLimit", undefined, permitBounds);
  const limitMin = writtenMin ?? Math.min(base.limitMin, writtenMax ?? base.limitMin);
  const limitMax = writtenMax ?? Math.max(base.limitMax, limitMin);
  if (limitMin > limitMax) {
    const message = `a minLimit of ${limitMin} is above a maxLimit of ${limitMax}`;
    block.refuseOrder(["minLimit"], message, "at most maxLimit");
  }
  return {
    limitMax,
    limitMin,
    percentile: block.number("percentile", base.percentile, positivePercentBounds),
    updateMs: block.durationMs("updateInterval", base.updateMs, measureBounds),
    minRtt: readMinRtt(block, base.minRtt),
  };
}

type MinRtt = AdaptiveConcurrencyPolicy["minRtt"];

/** `{fixed: 20ms}`, or how it is sampled. */
function readMinRtt(adaptive: Block, base: MinRtt): MinRtt {
  const block = adaptive.block("minRtt", minRttShape);
  if (block === undefined) return base;
  const bufferPercent = block.number("bufferPercent", base.bufferPercent, percentBounds);
  const isFixed = block.field("fixed") !== undefined;
  const sampledNames = ["interval", "requestCount", "jitterPercent"] as const;
  const sampledName = sampledNames.find((name) => block.field(name) !== undefined);
  if (isFixed && sampledName !== undefined) block.refusePair(sampledName, "fixed");
  const baseMs = base.kind === "fixed" ? base.ms : undefined;
  const fixedMs = block.durationMs("fixed", baseMs, measureBounds);
  if (fixedMs !== undefined && sampledName === undefined) {
    return { kind: "fixed", ms: fixedMs, bufferPercent };
  }
  const usual = base.kind === "sampled" ? base : defaultMinRtt;
  return {
    kind: "sampled",
    everyMs: block.durationMs("interval", usual.everyMs, measureBounds),
    requestCount: block.whole("requestCount", usual.requestCount, thresholdBounds),
    jitterPercent: block.number("jitterPercent", usual.jitterPercent, percentBounds),
    bufferPercent,
  };
}
