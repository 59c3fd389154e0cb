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

/** Maximum number of keys of one service that metrics name. */
export const concurrencyNamesMax = 100;

/** Maximum number of keys of one service that are held at once. */
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

/** The header that splits a limit. */
export type ConcurrencyKey = NonNullable<typeof key.defaults>;

/** Default algorithms: for requests observed one by one, and for reports from Envoys. */
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

/** The algorithm of a service, its sources, and the receivers of its limit. */
export type ServiceConcurrency = Pick<
  typeof concurrency.defaults,
  "per" | "sources" | "feedback"
> & {
  readonly settings: ConcurrencySettings;
  /** Source of the readings of `signal`, for polling. */
  readonly signal: SignalSource | undefined;
};

/** Result of reading `concurrency`. */
interface ReadConcurrency {
  /** Undefined: switched off. */
  readonly concurrency: ServiceConcurrency | undefined;
  /** Whether it limits the requests in flight. */
  readonly isLimited: boolean;
  /** Whether its algorithm follows a signal, as far as the valid settings show. */
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

/** The algorithm of a service with admission but without `concurrency`. */
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
  // A missing signal was reported as a problem, so this value is never used.
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

/** Refuses an algorithm that needs single requests: Envoys report means of many. */
function refuseSingle(block: Block, law: LawName): void {
  const message = `"law: ${law}" learns from single requests, and only extProc reports them`;
  block.report("law", { id: "HG126", message, expected: `law: ${defaultLaws.ofEnvoys}` });
}

/** Refuses feedback by `signal.host`: the leader would use the host that it happens to run on. */
function refuseFeedback(block: Block): void {
  const message = '"feedback" shares one limit, and each replica has its own "signal.host"';
  block.report("feedback", { id: "HG126", message, expected: "another source of the signal" });
}

/** Reads `min`, `initial` and `max`, in ascending order; `initial` defaults by the others. */
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

/** Learning algorithms start at 50, within the bounds; others at their limit without readings. */
function initialOf(
  law: LawName,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  const isLearned = isLearning(law) && concurrencyLaws[law].bounds !== "nothing";
  return isLearned ? Math.min(Math.max(50, min), max) : max;
}
