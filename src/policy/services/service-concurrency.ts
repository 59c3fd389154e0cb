import {
  type ConcurrencySettings,
  concurrencyLaws,
  isLearning,
  type LawName,
  lawNames,
} from "../../core/concurrency/concurrency-laws.js";
import type { LimitBounds } from "../../core/settings/admission-settings.js";
import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import { permitBounds } from "../text/quantities.js";
import { readHeaderName } from "../text/service-texts.js";
import { valueRule } from "../text/text-rules.js";
import { readLawSettings } from "./concurrency-settings.js";
import type { ConcurrencyKey, ServiceConcurrency } from "./service-policy.js";
import { concurrencyKeyShape, concurrencyShape, lawShapes, limitsShape } from "./service-shapes.js";
import { type ReadSignal, readSignal } from "./signal-settings.js";

/** Keys of one service that metrics may name. */
export const concurrencyNamesMax = 100;

/** Keys of one service that are held at once. */
export const concurrencyKeysMax = 100_000;

/** The bounds of `per.keysMax`. */
export const concurrencyKeyBounds = { min: 1, max: concurrencyKeysMax } as const;

/** What a law may listen to. */
export const concurrencySources = ["extProc", "envoyMetrics", "loadReports"] as const;

/** Where a limit may go. */
export const feedbackWords = ["circuitBreakers", "adaptiveConcurrency"] as const;

/** What `concurrency` says. */
export interface ReadConcurrency {
  /** Undefined: left out, or switched off. */
  readonly concurrency: ServiceConcurrency | undefined;
  /** Whether it sets a limit on what is in flight. */
  readonly isLimited: boolean;
  /** Whether its law follows a signal, as far as what is right of it says. */
  readonly hasSignal: boolean;
}

/** Reads `concurrency` of a service. */
export function readConcurrency(service: Block): ReadConcurrency {
  const none = { concurrency: undefined, isLimited: false, hasSignal: false };
  const block = service.block("concurrency", concurrencyShape);
  if (block === undefined) {
    // One that is wrong is told already; it may set a limit.
    const isWritten = !service.isLeftOut("concurrency");
    return { ...none, isLimited: isWritten, hasSignal: isWritten };
  }
  const sources = block.words("sources", ["extProc"], concurrencySources);
  const feedback = block.words("feedback", [], feedbackWords);
  const isOfFleet = feedback.length > 0 || sources.some((source) => source !== "extProc");
  const isGradient = isOfFleet || block.field("gradient") !== undefined;
  const law = block.choice("law", { usual: isGradient ? "gradient" : "knee", words: lawNames });
  refuseOtherLaws(block, law);
  if (isOfFleet && concurrencyLaws[law].learnsFrom === "requests") refuseSingle(block, law);
  const per = readKey(block);
  const signal = law === "signal" ? readSignal(block, per) : undefined;
  const limits = readLimits(block, law, signal);
  const settings = readSettings(block, { law, limits, signal });
  if (signal?.isOff) return none;
  const concurrency: ServiceConcurrency = {
    settings,
    per,
    signal: signal?.source,
    sources,
    feedback,
  };
  const isLimited =
    concurrencyLaws[law].bounds !== "nothing" || block.field("limits") !== undefined;
  return { concurrency, isLimited, hasSignal: concurrencyLaws[law].learnsFrom === "readings" };
}

/** The law of a service that is protected, and says nothing of how. */
export const defaultConcurrency: ServiceConcurrency = {
  settings: {
    limits: { initial: 50, min: 1, max: 1_000 },
    law: "knee",
  },
  per: undefined,
  signal: undefined,
  sources: ["extProc"],
  feedback: [],
};

function readSettings(
  block: Block,
  read: {
    readonly law: LawName;
    readonly limits: LimitBounds;
    readonly signal: ReadSignal | undefined;
  },
): ConcurrencySettings {
  const { law, limits, signal } = read;
  if (law !== "signal") return readLawSettings(block, law, limits);
  // Without a signal there was a problem with it, and nothing comes of this.
  return signal === undefined ? { limits, law: "fixed" } : { limits, ...signal.settings };
}

function refuseOtherLaws(block: Block, law: LawName): void {
  for (const other of Object.keys(lawShapes)) {
    const field = block.field(other);
    if (field === undefined || other === law) continue;
    const message = `"${other}" and "law: ${law}" exclude each other`;
    block.report(other, { id: "HG126", message, expected: `law: ${other}` });
  }
}

/** What Envoys tell are means of many requests. */
function refuseSingle(block: Block, law: LawName): void {
  const message = `"law: ${law}" learns from single requests, of which only extProc tells`;
  block.report("law", { id: "HG126", message, expected: "law: gradient" });
}

/** `min`, `initial` and `max`, in that order; where a law begins follows the other two. */
function readLimits(block: Block, law: LawName, signal: ReadSignal | undefined): LimitBounds {
  const limits = block.block("limits", limitsShape);
  const usual = signal?.defaultLimits ?? { min: 1, max: 1_000 };
  if (limits === undefined) return { initial: initialOf(law, usual), ...usual };
  const writtenMax = limits.whole("max", undefined, permitBounds);
  const min = limits.whole("min", Math.min(usual.min, writtenMax ?? usual.min), permitBounds);
  const max = writtenMax ?? Math.max(usual.max, min);
  const initial = limits.whole("initial", initialOf(law, { min, max }), permitBounds);
  const expected = "min at most initial, and initial at most max";
  if (min > max) {
    const message = `a min of ${min} is above a max of ${max}`;
    limits.report("min", { id: "HG203", message, expected });
  } else if (initial < min || initial > max) {
    const message = `an initial of ${initial} is not from ${min} to ${max}`;
    limits.report("initial", { id: "HG203", message, expected });
  }
  return { initial, min, max };
}

/** Laws that learn begin at 50, as near as they may; the others at what they hold without news. */
function initialOf(
  law: LawName,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  const isLearned = isLearning(law) && concurrencyLaws[law].bounds !== "nothing";
  return isLearned ? Math.min(Math.max(50, min), max) : max;
}

function readKey(block: Block): ConcurrencyKey | undefined {
  const key = block.block("per", concurrencyKeyShape);
  if (key === undefined) return undefined;
  const { reader } = key;
  const headerField = reader.requiredField(
    key.fields,
    "header",
    "the header that splits the limit",
  );
  const header = headerField && readHeaderName(reader, headerField);
  const items = key.items("names", "a list of keys that metrics may name", concurrencyNamesMax);
  const names = new Set(items.flatMap((item) => reader.readText(item, valueRule) ?? []));
  const keysMax = key.whole("keysMax", 1_000, concurrencyKeyBounds);
  if (names.size > keysMax) {
    const message = `${names.size} names are more than the ${keysMax} keys that are held`;
    key.report("names", {
      id: "HG203",
      message,
      expected: `at most ${quoteText("keysMax")} names`,
    });
  }
  return header === undefined ? undefined : { header, names: [...names], keysMax };
}
