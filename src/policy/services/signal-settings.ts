import type { PidSettings } from "../../core/concurrency/pid.js";
import type { SignalSettings } from "../../core/concurrency/signal-limit.js";
import type { LimitBounds } from "../../core/settings/admission-settings.js";
import { quoteText } from "../problems/problem.js";
import { Block } from "../text/block.js";
import { positiveRatioBounds } from "../text/quantities.js";
import { valueRule } from "../text/text-rules.js";
import type { ConcurrencyKey, SignalSource, SignalThreshold } from "./service-policy.js";
import { lawShapes, pidShape, thresholdOfKeyShape } from "./service-shapes.js";
import { readingBounds, readingMax, readSignalSource } from "./signal-source.js";

/** Keys of one service that have thresholds of their own. */
export const signalThresholdsMax = 100;

/** The largest gain of a controller. */
export const gainMax = 1_000;

/** The bounds of a gain. */
export const gainBounds = { min: 0, max: gainMax } as const;

/** What `signal` says. */
export interface ReadSignal {
  readonly settings: SignalSettings;
  readonly source: SignalSource | undefined;
  /** Bounds of the limit where the policy names none. */
  readonly defaultLimits: Pick<LimitBounds, "min" | "max">;
  /** No back-pressure at all. */
  readonly isOff: boolean;
}

/** What a preset stands for. */
interface SignalPreset extends Pick<LimitBounds, "min" | "max"> {
  readonly target: number;
  readonly critical: number;
  readonly everyMs: number;
}

/** Source: defaults and example configurations of a Kafka linearizer's admission control. */
const defaultPreset: SignalPreset = {
  min: 10,
  max: 1_000,
  target: 10_000,
  critical: 100_000,
  everyMs: 5_000,
};

const presets: Readonly<Record<"usual" | "throughput" | "cost" | "off", SignalPreset>> = {
  usual: defaultPreset,
  // A lag is met early, and with more room at the top.
  throughput: { min: 50, max: 2_000, target: 5_000, critical: 50_000, everyMs: 3_000 },
  // More lag may stand; less is in flight at any time.
  cost: { min: 5, max: 500, target: 20_000, critical: 200_000, everyMs: 10_000 },
  off: defaultPreset,
};

/** Presets of a signal. */
export const presetNames = ["usual", "throughput", "cost", "off"] as const;

/** Reads `signal`: a preset, and what differs from it; `per` is what splits the limit. */
export function readSignal(
  concurrency: Block,
  per: ConcurrencyKey | undefined,
): ReadSignal | undefined {
  const { reader, fields } = concurrency;
  reader.requiredField(fields, "signal", "signal: {prometheus: ..., target: ..., critical: ...}");
  const block = concurrency.block("signal", lawShapes.signal);
  if (block === undefined) return undefined;
  const name = block.choice("preset", { usual: "usual", words: presetNames });
  const preset = presets[name];
  const { target, critical } = readThreshold(block, preset);
  const smoothingRatio = block.number("smoothing", 1, positiveRatioBounds);
  const isOff = name === "off";
  const isSplit = per !== undefined || !concurrency.isLeftOut("per");
  const source = readSignalSource(block, { everyMs: preset.everyMs, isOff, isSplit });
  const thresholds = readThresholds(block, per, isSplit);
  return {
    settings: { law: "signal", target, critical, smoothingRatio, pid: readPid(block) },
    source: source && { ...source, thresholds },
    defaultLimits: { min: preset.min, max: preset.max },
    isOff,
  };
}

function readThreshold(
  block: Block,
  usual: Pick<SignalPreset, "target" | "critical">,
): Pick<SignalPreset, "target" | "critical"> {
  const target = block.number("target", usual.target, readingBounds);
  const critical = block.number("critical", usual.critical, readingBounds);
  if (critical <= target) {
    block.report(block.field("critical") === undefined ? "target" : "critical", {
      id: "HG205",
      message: `a critical reading of ${critical} is not above the target of ${target}`,
      expected: "a critical reading above the target",
    });
  }
  return { target, critical };
}

/** Gains as they are proved for a consumer that keeps up with half of what all permits bring. */
function readPid(block: Block): PidSettings | undefined {
  const pid = block.block("pid", pidShape);
  if (pid === undefined) return undefined;
  return {
    kp: pid.number("kp", 1, gainBounds),
    kiPerSecond: pid.number("ki", 0.005, gainBounds),
    kdSeconds: pid.number("kd", 0, gainBounds),
  };
}

/** Thresholds of keys that the policy names. */
function readThresholds(
  block: Block,
  per: ConcurrencyKey | undefined,
  isSplit: boolean,
): readonly SignalThreshold[] {
  const { reader } = block;
  const items = block.items("thresholds", "a list of thresholds by key", signalThresholdsMax);
  if (items.length > 0 && !isSplit) {
    const message = '"thresholds" are of keys, and the limit is not split by any';
    const expected = "concurrency.per: the header that splits the limit";
    block.report("thresholds", { id: "HG207", message, expected });
    return [];
  }
  const thresholds = new Map<string, SignalThreshold>();
  for (const item of items) {
    const place = reader.required(item, "{name: ..., target: ..., critical: ...}");
    const own = place && Block.at(reader, place, thresholdOfKeyShape);
    if (own === undefined) continue;
    const expected = "one of concurrency.per.names";
    const nameField = reader.requiredField(own.fields, "name", expected);
    for (const field of ["target", "critical"]) {
      reader.requiredField(own.fields, field, "a reading");
    }
    const name = nameField && reader.readText(nameField, valueRule);
    const threshold = readThreshold(own, { target: 0, critical: readingMax });
    if (name === undefined) continue;
    if (thresholds.has(name)) {
      own.report("name", { id: "HG126", message: `${quoteText(name)} has thresholds above` });
    } else if (per !== undefined && !per.names.includes(name)) {
      const message = `${quoteText(name)} is not a key that the policy names`;
      own.report("name", { id: "HG207", message, expected });
    }
    thresholds.set(name, { name, ...threshold });
  }
  return [...thresholds.values()];
}
