import { isKeyOf } from "../../core/base/key-of.js";
import {
  type ConcurrencySettings,
  concurrencyLaws,
  isLearning,
  type LawName,
  lawNames,
} from "../../core/concurrency/concurrency-laws.js";
import type { LimitBounds } from "../../core/concurrency/limit-bounds.js";
import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import { ruledText, whole, words } from "../text/form.js";
import { field, inner, innerBy, items, object, readField, wordList } from "../text/object.js";
import { permitBounds } from "../text/quantities.js";
import { headerName } from "../text/service-texts.js";
import { valueRule } from "../text/text-rules.js";
import { lawDocs, lawFields, neededLawFields } from "./concurrency-settings.js";
import { type ReadSignal, readSignal, signal } from "./signal-settings.js";
import type { SignalSource } from "./signal-source.js";

/** Keys of one service that metrics may name. */
export const concurrencyNamesMax = 100;

/** Keys of one service that are held at once. */
export const concurrencyKeysMax = 100_000;

const limits = object(
  { title: "limits", docs: "Bounds of the limit on requests in flight." },
  {
    initial: field(
      whole(permitBounds),
      "The initial limit of a law that learns. The feedback loop begins above it if more is in " +
        "use without a queue. Default: 50.",
      { larger: "looser" },
    ),
    min: field(whole(permitBounds), "The minimum limit.", {
      larger: "looser",
      dependentDefault: 1,
    }),
    max: field(whole(permitBounds), "The maximum limit.", {
      larger: "looser",
      dependentDefault: 1_000,
    }),
  },
);

const key = object(
  { title: "per", docs: "Splits the limit by the value of a header, such as a database name." },
  {
    header: field(headerName, "The header that splits it.", {
      needs: "the header that splits the limit",
    }),
    names: field(
      items(ruledText(valueRule), {
        expected: "a list of keys that metrics may name",
        max: concurrencyNamesMax,
      }),
      "Keys that may appear in metrics.",
      { default: [] },
    ),
    keysMax: field(whole({ min: 1, max: concurrencyKeysMax }), "Maximum number of keys.", {
      larger: "looser",
      default: 1_000,
    }),
  },
  {
    data({ header, names, keysMax }) {
      const distinct: readonly string[] = [...new Set(names)];
      return header === undefined ? undefined : { header, names: distinct, keysMax };
    },
    check(block, _, { names, keysMax }) {
      const count = new Set(names).size;
      if (count <= keysMax) return;
      const message = `${count} names exceed the maximum of ${keysMax} keys`;
      const expected = `at most ${quoteText("keysMax")} names`;
      block.report("names", { id: "HG203", message, expected });
    },
  },
);

/** By which header a limit is split. */
export type ConcurrencyKey = NonNullable<typeof key.defaults>;

/** Laws where none is named: of requests that are seen one by one, and of what Envoys tell. */
const defaultLaws = { ofRequests: "knee", ofEnvoys: "gradient" } as const;

/** `concurrency` of a service. */
export const concurrency = object(
  { title: "a concurrency", docs: "The law that sets the limit for the fleet." },
  {
    law: field(
      words(...lawNames),
      "The algorithm that finds the limit. Default: knee. With reports from " +
        "Envoys, feedback, or a `gradient` block: gradient.",
    ),
    limits: field(
      innerBy(limits, (block) => block),
      "Bounds of the limit.",
    ),
    per: field(inner(key), "Splits the limit by a header. Default: one limit."),
    sources: field(
      wordList(["extProc", "envoyMetrics", "loadReports"]),
      "What the law observes. Default: extProc.",
      { default: ["extProc"] },
    ),
    feedback: field(
      wordList(["circuitBreakers", "adaptiveConcurrency"]),
      "The Envoy settings that receive the limit. Default: none.",
      { default: [] },
    ),
    ...lawFields,
    signal: field(
      innerBy(signal, (block) => block),
      lawDocs,
    ),
  },
);

/** The law of a service, what it listens to, and where its limit goes. */
export type ServiceConcurrency = Pick<
  typeof concurrency.defaults,
  "per" | "sources" | "feedback"
> & {
  readonly settings: ConcurrencySettings;
  /** Where readings of `signal` come from, as they are polled. */
  readonly signal: SignalSource | undefined;
};

/** What `concurrency` says. */
interface ReadConcurrency {
  /** Undefined: switched off. */
  readonly concurrency: ServiceConcurrency | undefined;
  /** Whether it sets a limit on what is in flight. */
  readonly isLimited: boolean;
  /** Whether its law follows a signal, as far as what is right of it says. */
  readonly hasSignal: boolean;
}

/** Reads `concurrency` of a service. */
export function readConcurrency(block: Block): ReadConcurrency {
  const sources = readField(concurrency, block, "sources");
  const feedback = readField(concurrency, block, "feedback");
  const isOfFleet = feedback.length > 0 || sources.some((source) => source !== "extProc");
  const { ofEnvoys, ofRequests } = defaultLaws;
  const isOfEnvoys = isOfFleet || block.field(ofEnvoys) !== undefined;
  const law = readField(concurrency, block, "law") ?? (isOfEnvoys ? ofEnvoys : ofRequests);
  refuseOtherLaws(block, law);
  if (isOfFleet && concurrencyLaws[law].learnsFrom === "requests") refuseSingle(block, law);
  block.declared(law, neededLawFields[law]);
  const per = readField(concurrency, block, "per");
  const read = law === "signal" ? readLawSignal(block, per) : undefined;
  const bounds = readLimits(block, law, read);
  const settings = readSettings(block, { law, bounds, read });
  if (read?.settings.isOfReplica === true && feedback.length > 0) refuseFeedback(block);
  if (read?.isOff) return { concurrency: undefined, isLimited: false, hasSignal: false };
  const isLimited =
    concurrencyLaws[law].bounds !== "nothing" || block.field("limits") !== undefined;
  return {
    concurrency: { settings, per, signal: read?.source, sources, feedback },
    isLimited,
    hasSignal: concurrencyLaws[law].learnsFrom === "readings",
  };
}

/** The law of a service that is protected, and says nothing of how. */
export const defaultConcurrency: ServiceConcurrency = {
  settings: {
    limits: { initial: 50, min: 1, max: 1_000 },
    law: defaultLaws.ofRequests,
  },
  per: undefined,
  signal: undefined,
  sources: ["extProc"],
  feedback: [],
};

function readLawSignal(block: Block, per: ConcurrencyKey | undefined): ReadSignal | undefined {
  const own = readField(concurrency, block, "signal");
  return own && readSignal(own, { per, isSplit: per !== undefined || !block.isLeftOut("per") });
}

function readSettings(
  block: Block,
  {
    law,
    bounds,
    read,
  }: {
    readonly law: LawName;
    readonly bounds: LimitBounds;
    readonly read: ReadSignal | undefined;
  },
): ConcurrencySettings {
  // Without a signal there was a problem with it, and nothing comes of this.
  if (law === "signal") return { limits: bounds, ...(read?.settings ?? { law: "fixed" }) };
  if (!isKeyOf(lawFields, law)) return { limits: bounds, law };
  return { limits: bounds, ...readField(concurrency, block, law) };
}

function refuseOtherLaws(block: Block, law: LawName): void {
  for (const other of lawNames) {
    if (block.field(other) === undefined || other === law) continue;
    const message = `"${other}" and "law: ${law}" exclude each other`;
    block.report(other, { id: "HG126", message, expected: `law: ${other}` });
  }
}

/** What Envoys tell are means of many requests. */
function refuseSingle(block: Block, law: LawName): void {
  const message = `"law: ${law}" learns from single requests, and only extProc reports them`;
  block.report("law", { id: "HG126", message, expected: `law: ${defaultLaws.ofEnvoys}` });
}

/** The leader gives Envoys one limit, and would go by the host that it happens to run on. */
function refuseFeedback(block: Block): void {
  const message = '"feedback" shares one limit, and each replica has its own "signal.host"';
  block.report("feedback", { id: "HG126", message, expected: "another source of the signal" });
}

/** `min`, `initial` and `max`, in that order; where a law begins follows the other two. */
function readLimits(block: Block, law: LawName, read: ReadSignal | undefined): LimitBounds {
  const own = readField(concurrency, block, "limits");
  const defaults = read?.defaultLimits ?? { min: 1, max: 1_000 };
  if (own === undefined) return { initial: initialOf(law, defaults), ...defaults };
  const writtenMax = readField(limits, own, "max");
  const min = readField(limits, own, "min") ?? Math.min(defaults.min, writtenMax ?? defaults.min);
  const max = writtenMax ?? Math.max(defaults.max, min);
  const initial = readField(limits, own, "initial") ?? initialOf(law, { min, max });
  const expected = "min at most initial, and initial at most max";
  if (min > max) {
    const message = `min is ${min}, which is above max, ${max}`;
    own.report("min", { id: "HG203", message, expected });
  } else if (initial < min || initial > max) {
    const message = `initial is ${initial}, which is outside ${min} to ${max}`;
    own.report("initial", { id: "HG203", message, expected });
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
