import type { AimdSettings } from "../../core/concurrency/aimd-limit.js";
import type { ConcurrencySettings } from "../../core/concurrency/concurrency-laws.js";
import type { GradientSettings } from "../../core/concurrency/gradient-limit.js";
import {
  type LatencyShedSettings,
  latencyShedWindowCountMax,
} from "../../core/concurrency/latency-shed.js";
import type { RttStatistic } from "../../core/concurrency/rtt-statistic.js";
import type { VegasSettings } from "../../core/concurrency/vegas-limit.js";
import type { LimitBounds } from "../../core/settings/admission-settings.js";
import type { Block } from "../text/block.js";
import { type NumberBounds, positiveRatioBounds, readDuration } from "../text/quantities.js";
import type { TextRule } from "../text/text-rules.js";
import { marginBounds, waitBounds } from "./admission-blocks.js";
import { lawShapes } from "./service-shapes.js";

/** What a law that learns from requests, or not at all, is told. */
type LawSettings = Exclude<ConcurrencySettings, { readonly law: "signal" }>;

/** Reads the settings of a law in the block that has its name; what is left out is as usual. */
export function readLawSettings(
  concurrency: Block,
  law: LawSettings["law"],
  limits: LimitBounds,
): LawSettings {
  switch (law) {
    case "aimd":
      return { limits, ...readAimd(concurrency.block(law, lawShapes[law])) };
    case "vegas":
      return { limits, ...readVegas(concurrency.block(law, lawShapes[law])) };
    case "gradient":
      return { limits, ...readGradient(concurrency.block(law, lawShapes[law])) };
    case "latencyShed":
      return { limits, ...readLatencyShed(concurrency) };
    default:
      return { limits, law };
  }
}

function readAimd(block: Block | undefined): AimdSettings {
  return {
    law: "aimd",
    increase: block?.number("increase", undefined, increaseBounds) ?? 1,
    decreaseRatio: block?.number("decrease", undefined, decreaseBounds) ?? 0.5,
  };
}

function readVegas(block: Block | undefined): VegasSettings {
  return {
    law: "vegas",
    smoothingRatio: block?.number("smoothing", undefined, positiveRatioBounds) ?? 1,
    statistic: readStatistic(block),
  };
}

function readGradient(block: Block | undefined): GradientSettings {
  return {
    law: "gradient",
    rttTolerance: block?.number("rttTolerance", undefined, rttToleranceBounds) ?? 1.5,
    smoothingRatio: block?.number("smoothing", undefined, positiveRatioBounds) ?? 0.2,
    baseline: block?.choice("baseline", baselines) ?? "minRtt",
    statistic: readStatistic(block),
  };
}

/** The bounds of `increase` and `factor`. */
export const increaseBounds: NumberBounds = { min: 0, max: 1_000, isMinExcluded: true };

/** The bounds of `decrease`. */
export const decreaseBounds: NumberBounds = { min: 0, max: 0.999, isMinExcluded: true };

/** The bounds of `rttTolerance`. */
export const rttToleranceBounds: NumberBounds = { min: 1, max: 100 };

/** What a gradient is taken against. */
export const baselines = { usual: "minRtt", words: ["minRtt", "drifting"] } as const;

/** The one law that cannot be guessed: what is too slow, its service knows. */
function readLatencyShed(concurrency: Block): LatencyShedSettings {
  const { reader, fields } = concurrency;
  const expected = "latencyShed: {threshold: 250ms}";
  reader.requiredField(fields, "latencyShed", expected);
  const block = concurrency.block("latencyShed", lawShapes.latencyShed);
  const field =
    block && reader.requiredField(block.fields, "threshold", "a latency, such as 250ms");
  const thresholdMs = field && readDuration(reader, field, waitBounds);
  return {
    law: "latencyShed",
    thresholdMs: thresholdMs ?? 1_000,
    statistic: readStatistic(block),
    windowCount: block?.whole("window", undefined, windowBounds) ?? 100,
    factor: block?.number("factor", undefined, increaseBounds) ?? 1,
    sustainedMs: block?.durationMs("sustained", undefined, marginBounds) ?? 1_000,
  };
}

/** The bounds of `window`. */
export const windowBounds = { min: 1, max: latencyShedWindowCountMax };

const statisticRule: TextRule = {
  charsMax: 16,
  forbidden: /\p{Cc}/u,
  expected: "mean, or a percentile such as p50 or p99",
};

function readStatistic(block: Block | undefined): RttStatistic {
  const mean = { kind: "mean" } as const;
  const text = block?.text("statistic", statisticRule) ?? "mean";
  const percentile = Number(/^p([0-9]{1,3}(?:\.[0-9]{1,3})?)$/.exec(text)?.[1] ?? 0);
  if (text === "mean") return mean;
  if (percentile > 0 && percentile <= 100) return { kind: "percentile", percentile };
  const message = "this is neither a mean nor a percentile";
  const { expected } = statisticRule;
  return block?.report("statistic", { id: "HG133", message, expected }) ?? mean;
}
