import { assertNever } from "../base/errors.js";
import type {
  AimdSettings,
  ConcurrencySettings,
  GradientSettings,
  LatencyShedSettings,
  LimitBounds,
  SignalSettings,
  VegasSettings,
} from "../settings/admission-settings.js";
import { AimdLimit } from "./aimd-limit.js";
import type { BaselineLimit, KnownBaseline } from "./baseline-limit.js";
import type { ConcurrencyLimit } from "./concurrency-limit.js";
import { DriftingGradientLimit } from "./drifting-gradient-limit.js";
import { FixedLimit } from "./fixed-limit.js";
import { GradientLimit } from "./gradient-limit.js";
import { KneeLimit } from "./knee-limit.js";
import { LatencyShed } from "./latency-shed.js";
import { SignalLimit } from "./signal-limit.js";
import { VegasLimit } from "./vegas-limit.js";
import { WindowLimit } from "./window-limit.js";

/** What holds where a policy says nothing else; reasons stand beside each setting and law. */
export const concurrencyDefaults: ConcurrencyDefaults = {
  limits: { initial: 50, min: 1, max: 1_000 },
  aimd: { increase: 1, decreaseRatio: 0.5 },
  vegas: { smoothingRatio: 1, statistic: { kind: "mean" } },
  gradient: {
    rttTolerance: 1.5,
    smoothingRatio: 0.2,
    baseline: "minRtt",
    statistic: { kind: "mean" },
  },
  latencyShed: { statistic: { kind: "mean" }, windowCount: 100, factor: 1, sustainedMs: 1_000 },
  signal: { smoothingRatio: 1, pid: undefined },
};

/** Settings by law, without those that have no default: thresholds, and what a signal means. */
export interface ConcurrencyDefaults {
  readonly limits: LimitBounds;
  readonly aimd: Omit<AimdSettings, "law">;
  readonly vegas: Omit<VegasSettings, "law">;
  readonly gradient: Omit<GradientSettings, "law">;
  readonly latencyShed: Omit<LatencyShedSettings, "law" | "thresholdMs">;
  readonly signal: Omit<SignalSettings, "law" | "target" | "critical">;
}

/**
 * A law as its settings say. Settings are taken as they are: `src/policy` refuses impossible ones.
 *
 * @param known what it begins with where it goes by a baseline. Default: nothing is known yet
 */
export function createConcurrencyLimit(
  settings: ConcurrencySettings,
  known?: KnownBaseline,
): ConcurrencyLimit {
  const { limits } = settings;
  switch (settings.law) {
    case "fixed":
      return new FixedLimit(limits);
    case "aimd":
      return new AimdLimit(settings, limits);
    case "vegas":
      return begun(new VegasLimit(settings, limits), known);
    case "gradient":
      return settings.baseline === "drifting"
        ? new DriftingGradientLimit(settings, limits)
        : begun(new GradientLimit(settings, limits), known);
    case "knee":
      return new KneeLimit(limits);
    case "latencyShed":
      return new LatencyShed(settings, limits);
    case "signal":
      return new SignalLimit(settings, limits);
    case "window":
      return new WindowLimit(limits);
    default:
      return assertNever(settings);
  }
}

function begun(law: BaselineLimit, known: KnownBaseline | undefined): ConcurrencyLimit {
  return known === undefined ? law : law.begin(known);
}
