import { hostReadings } from "../../core/admission/host-reading.js";
import type { LimitBounds } from "../../core/concurrency/limit-bounds.js";
import type { SignalSettings } from "../../core/concurrency/signal-limit.js";
import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import { number, readBy, ruledText, words } from "../text/form.js";
import { field, inner, innerBlock, items, object, readField } from "../text/object.js";
import { positiveRatioBounds } from "../text/quantities.js";
import { valueRule } from "../text/text-rules.js";
import {
  placeKinds,
  readingBounds,
  readingMax,
  readSignalSource,
  type SignalSource,
  type SignalThreshold,
  signalSourceFields,
} from "./signal-source.js";

/** Maximum number of keys of one service that have thresholds of their own. */
export const signalThresholdsMax = 100;

/** Maximum gain of a controller. */
export const gainMax = 1_000;

const gainBounds = { min: 0, max: gainMax } as const;

/** Result of reading `signal`. */
export interface ReadSignal {
  readonly settings: SignalSettings;
  readonly source: SignalSource | undefined;
  /** Bounds of the limit if the policy sets none. */
  readonly defaultLimits: Pick<LimitBounds, "min" | "max">;
  /** Whether there is no back-pressure at all. */
  readonly isOff: boolean;
}

/** Values of a preset. */
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
  // Reacts early to a lag, and allows a higher limit.
  throughput: { min: 50, max: 2_000, target: 5_000, critical: 50_000, everyMs: 3_000 },
  // Tolerates more lag, with fewer requests in flight.
  cost: { min: 5, max: 500, target: 20_000, critical: 200_000, everyMs: 10_000 },
  off: defaultPreset,
};

const targetDocs = "The reading from which the limit falls.";
const criticalDocs = "The reading at which only the minimum limit remains.";

/** The default gains are proven for a consumer that keeps up with half the load of all permits. */
const pid = object(
  { title: "a pid", docs: "A PID controller instead of a line from target to critical." },
  {
    kp: field(number(gainBounds), "The proportional gain.", { larger: "different", default: 1 }),
    ki: field(number(gainBounds), "The integral gain, per second.", {
      larger: "different",
      as: "kiPerSecond",
      default: 0.005,
    }),
    kd: field(number(gainBounds), "The derivative gain, in seconds.", {
      larger: "different",
      as: "kdSeconds",
      default: 0,
    }),
  },
);

const keyName = "one of concurrency.per.names";

const keyThreshold = object(
  { title: "a key's thresholds", docs: "The thresholds of one key." },
  {
    name: field(ruledText(valueRule), "The key, one of `per.names`.", { needs: keyName }),
    target: field(number(readingBounds), targetDocs, { larger: "looser", needs: "a reading" }),
    critical: field(number(readingBounds), criticalDocs, { larger: "looser", needs: "a reading" }),
  },
);

const thresholdsOfKey = innerBlock(keyThreshold, "{name: ..., target: ..., critical: ...}");

/** Thresholds are read once it is known that the limit is split by keys. */
const laterThresholds = readBy(
  thresholdsOfKey,
  (reader, place) => () => thresholdsOfKey.read(reader, place),
);

/** `concurrency.signal`. */
export const signal = object(
  {
    title: "signal",
    docs: "Sets the limit from an external reading, such as a consumer's lag.",
    needed: [[...placeKinds, "preset"]],
    clashing: [placeKinds],
  },
  {
    preset: field(
      words("usual", "throughput", "cost", "off"),
      "A set of defaults for limits, readings and `every`. `usual`: 10 to 1,000, " +
        "10,000 to 100,000, 5 s. `throughput`: 50 to 2,000, 5,000 to 50,000, 3 s. " +
        "`cost`: 5 to 500, 20,000 to 200,000, 10 s.",
      { default: "usual" },
    ),
    ...signalSourceFields.place,
    target: field(number(readingBounds), targetDocs, {
      larger: "looser",
      dependentDefault: defaultPreset.target,
    }),
    critical: field(number(readingBounds), criticalDocs, {
      larger: "looser",
      dependentDefault: defaultPreset.critical,
    }),
    smoothing: field(number(positiveRatioBounds), "The weight of a new reading.", {
      larger: "different",
      as: "smoothingRatio",
      default: 1,
    }),
    pid: field(
      inner(pid),
      "A PID controller instead of a line. It moves the limit until the reading is " +
        "at `target`. Default: the line.",
    ),
    thresholds: field(
      items(laterThresholds, {
        expected: "a list of thresholds by key",
        max: signalThresholdsMax,
      }),
      "Thresholds for single keys.",
      { default: [] },
    ),
    ...signalSourceFields.times,
  },
);

/** The keys that split the limit. */
interface Split {
  /** Undefined if it is wrong. */
  readonly per: { readonly names: readonly string[] } | undefined;
  readonly isSplit: boolean;
}

/** Reads `signal`: a preset, and the settings that differ from it. */
export function readSignal(block: Block, split: Split): ReadSignal {
  const name = readField(signal, block, "preset");
  const isOff = name === "off";
  const { isSplit } = split;
  const { everyMs } = presets[name];
  const source = readSignalSource(block, { everyMs, isOff, isSplit });
  const host = source?.place.kind === "host" ? source.place.name : undefined;
  const preset = { ...presets[name], ...(host === undefined ? {} : hostReadings[host]) };
  const { target = preset.target, critical = preset.critical } = {
    target: readField(signal, block, "target"),
    critical: readField(signal, block, "critical"),
  };
  refuseDisorder(block, { target, critical });
  // Defaults are numbers of messages.
  if (source?.place.kind === "kafka" && source.place.unit === "seconds") {
    for (const bound of ["target", "critical"]) block.declared(bound, "a lag in seconds");
  }
  const thresholds = readThresholds(block, split);
  return {
    settings: {
      law: "signal",
      target,
      critical,
      smoothingRatio: readField(signal, block, "smoothing"),
      pid: readField(signal, block, "pid"),
      ...(host === undefined ? {} : { isOfReplica: true }),
    },
    source: source && { ...source, thresholds },
    defaultLimits: { min: preset.min, max: preset.max },
    isOff,
  };
}

function refuseDisorder(
  block: Block,
  { target, critical }: Pick<SignalPreset, "target" | "critical">,
): void {
  if (critical > target) return;
  block.report(block.field("critical") === undefined ? "target" : "critical", {
    id: "HG205",
    message: `critical is ${critical}, which is not above the target ${target}`,
    expected: "a critical reading above the target",
  });
}

/** Reads the thresholds of keys that the policy names. */
function readThresholds(block: Block, { per, isSplit }: Split): readonly SignalThreshold[] {
  const items = readField(signal, block, "thresholds");
  if (items.length > 0 && !isSplit) {
    const message = '"thresholds" applies to keys, and the limit is not split by a header';
    const expected = "concurrency.per: the header that splits the limit";
    block.report("thresholds", { id: "HG207", message, expected });
    return [];
  }
  const thresholds = new Map<string, SignalThreshold>();
  for (const read of items) {
    const { block: own, data } = read() ?? {};
    if (own === undefined || data === undefined) continue;
    const { name, target = 0, critical = readingMax } = data;
    refuseDisorder(own, { target, critical });
    if (name === undefined) continue;
    if (thresholds.has(name)) {
      own.report("name", {
        id: "HG126",
        message: `${quoteText(name)} already has thresholds above`,
      });
    } else if (per !== undefined && !per.names.includes(name)) {
      const message = `${quoteText(name)} is not one of the keys in \`per.names\``;
      own.report("name", { id: "HG207", message, expected: keyName });
    }
    thresholds.set(name, { name, target, critical });
  }
  return [...thresholds.values()];
}
