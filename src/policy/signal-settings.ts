import type { LimitBounds, SignalSettings } from "../core/admission-settings.js";
import type { Block } from "./block.js";
import { positiveRatioBounds, readNumber } from "./quantities.js";
import type { SignalSource } from "./service-policy.js";
import { lawShapes } from "./service-shapes.js";
import { readUrl } from "./service-texts.js";
import type { TextRule } from "./text-rules.js";

/** The largest reading that may be named: a double holds whole numbers up to here. */
export const readingMax = Number.MAX_SAFE_INTEGER;

/** What `signal` says. */
export interface ReadSignal {
  readonly settings: SignalSettings;
  readonly source: SignalSource | undefined;
  /** Bounds of the limit where the policy names none. */
  readonly usualLimits: Pick<LimitBounds, "min" | "max">;
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
const usualPreset: SignalPreset = {
  min: 10,
  max: 1_000,
  target: 10_000,
  critical: 100_000,
  everyMs: 5_000,
};

const presets: Readonly<Record<"usual" | "throughput" | "cost" | "off", SignalPreset>> = {
  usual: usualPreset,
  // A lag is met early, and with more room at the top.
  throughput: { min: 50, max: 2_000, target: 5_000, critical: 50_000, everyMs: 3_000 },
  // More lag may stand; less is in flight at any time.
  cost: { min: 5, max: 500, target: 20_000, critical: 200_000, everyMs: 10_000 },
  off: usualPreset,
};

const presetNames = ["usual", "throughput", "cost", "off"] as const;

/** Reads `signal`: a preset, and what differs from it. */
export function readSignal(concurrency: Block): ReadSignal | undefined {
  const { reader, fields } = concurrency;
  reader.requiredField(fields, "signal", "signal: {prometheus: ..., target: ..., critical: ...}");
  const block = concurrency.block("signal", lawShapes.signal);
  if (block === undefined) return undefined;
  const name = block.choice("preset", { usual: "usual", words: presetNames });
  const preset = presets[name];
  const bounds = { min: 0, max: readingMax };
  const target = block.number("target", preset.target, bounds);
  const critical = block.number("critical", preset.critical, bounds);
  if (critical <= target) {
    block.report(block.field("critical") === undefined ? "target" : "critical", {
      id: "HG205",
      message: `a critical reading of ${critical} is not above the target of ${target}`,
      expected: "a critical reading above the target",
    });
  }
  const everyMs = block.durationMs("every", preset.everyMs, { minMs: 100, maxMs: 3_600_000 });
  const smoothingRatio = block.number("smoothing", 1, positiveRatioBounds);
  return {
    settings: { law: "signal", target, critical, smoothingRatio },
    source: readSource(block, everyMs, name === "off"),
    usualLimits: { min: preset.min, max: preset.max },
    isOff: name === "off",
  };
}

const sourceKinds = ["prometheus", "redis", "http", "fixed"] as const;

/** Where the reading comes from: exactly one of the four. */
function readSource(block: Block, everyMs: number, isOff: boolean): SignalSource | undefined {
  const [kind, ...others] = sourceKinds.filter((name) => block.field(name) !== undefined);
  if (kind === undefined) {
    const isMissing = !isOff && sourceKinds.every((name) => block.isLeftOut(name));
    const expected = "prometheus: a query, redis: a key, http: a URL, or fixed: a number";
    const message = '"signal" says nothing of where its reading comes from';
    if (isMissing) block.reader.report(block.fields.node, { id: "HG125", message, expected });
    return undefined;
  }
  for (const other of others) block.refusePair(other, kind);
  const from = readFrom(block, kind);
  return from === undefined ? undefined : { kind, from, everyMs };
}

function readFrom(block: Block, kind: SignalSource["kind"]): string | undefined {
  const field = block.field(kind);
  if (field === undefined) return undefined;
  if (kind === "http") return readUrl(block.reader, field);
  if (kind !== "fixed") return block.reader.readText(field, sourceRules[kind]);
  const reading = readNumber(block.reader, field, { min: 0, max: readingMax });
  return reading === undefined ? undefined : String(reading);
}

const sourceRules: Readonly<Record<"prometheus" | "redis", TextRule>> = {
  prometheus: {
    charsMax: 4_096,
    forbidden: /(?![\n\t])\p{Cc}/u,
    expected: "a query of PromQL that gives one number, at most 4096 characters",
  },
  redis: { charsMax: 512, forbidden: /\p{Cc}/u, expected: "a key that holds a number" },
};
