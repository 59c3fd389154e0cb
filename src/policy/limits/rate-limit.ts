import { isScalar, type ParsedNode } from "yaml";
import {
  type Algorithm,
  type Denial,
  drainTimeUsMax,
  hitsMax,
  type Limit,
  type LimitDefaults,
  type LimitUnit,
  type OverLimit,
  settledRole,
  unitSeconds,
} from "../../core/limits/limit.js";
import { defaultOverrideMax, multiplierMax } from "../../core/limits/override.js";
import { quoteText } from "../problems/problem.js";
import { Block } from "../text/block.js";
import {
  any,
  choice,
  type Form,
  flag,
  readBy,
  ruledText,
  text,
  whole,
  words,
} from "../text/form.js";
import type { NodeReader } from "../text/node-reader.js";
import { field, inner, object, readField, wordOr } from "../text/object.js";
import { parsePeriod, periodSecondsMax, unitOfPeriod } from "../text/period.js";
import type { Dialect } from "../text/shapes.js";
import { nameRule } from "../text/text-rules.js";
import { algorithmFields, readAlgorithm, refuseOffCalendar } from "./algorithm.js";
import { limitOver, warnAt, warnHeaders, warnOfCluster } from "./over.js";
import { type ReplacedName, replaces } from "./replaces.js";
import { readSpread } from "./spread.js";

/** The content of a `rate_limit`; `node` is its place (or an alias), for problems found later. */
export type RateLimit = {
  readonly node: ParsedNode;
  /** As written: a name may occur twice. */
  readonly replaces: readonly ReplacedName[];
} & (
  | { readonly kind: "limit"; readonly limit: Limit }
  | { readonly kind: "unlimited"; readonly name?: string }
);

/** Context of a limit, from its descriptor. */
interface LimitContext {
  readonly dialect: Dialect;
  readonly mode: Denial;
  readonly defaults: LimitDefaults;
  /** Number of regions of the deployment that reads the policy; undefined if unknown. */
  readonly regionCount: number | undefined;
  /** Called with the name of each limit, even if the rest of the limit is wrong. */
  readonly defineName: (name: string) => void;
  /** Called for each limit that needs ext_proc. @param warn called if no service uses it there */
  readonly needsExtProc: (warn: () => void) => void;
  /** Called for each limit with a fallback cluster. @param warn called if no service has it */
  readonly needsCluster: (cluster: string, warn: () => void) => void;
}

/** Periods that have a name. */
const units: readonly LimitUnit[] = ["second", "minute", "hour", "day", "week", "month", "year"];

/** The period of a limit. */
export type LimitPeriod = Pick<Limit, "unit" | "unitMultiplier" | "periodUs">;

const periodRule = {
  charsMax: 64,
  forbidden: /\p{Cc}/u,
  expected: "a period like 10s, 5m, 1h30m, 1d or 2w",
};

/** A period of whole seconds. */
export const period = readBy<LimitPeriod>(
  text(periodRule, /^(?:[0-9]+w)?(?:[0-9]+d)?(?:[0-9]+h)?(?:[0-9]+m)?(?:[0-9]+s)?$/),
  (reader, place) => {
    const { expected } = periodRule;
    const node = reader.required(place, expected);
    const written = node && reader.readText(place, periodRule);
    if (node === undefined || written === undefined) return undefined;
    const read = parsePeriod(written);
    if (read.kind === "unreadable") {
      const isNumber = /^[1-9][0-9]*$/.test(written);
      const suggestion = isNumber ? `${quoteText(written).slice(1, -1)}s` : undefined;
      const message = `${quoteText(written)} is not a period`;
      return reader.reportContent(node, { id: "HG143", message, expected, suggestion });
    }
    if (read.seconds > periodSecondsMax) {
      const message = `${quoteText(written)} is longer than ten years`;
      return reader.reportContent(node, { id: "HG144", message });
    }
    return { ...unitOfPeriod(read.seconds), periodUs: read.seconds * 1_000_000 };
  },
);

/** `overrideMax` of a limit or a domain: maximum factor by which an override raises a limit. */
export const overrideMaxField = field(
  whole({ min: 1, max: multiplierMax }),
  "How many times the limit an operator's override may set, for hits and burst.",
  { dependentDefault: defaultOverrideMax },
);

/** A flag in the syntax of a dialect. */
export function dialectFlag(dialect: Dialect) {
  const form: Form = dialect === "headgate" ? flag : { kind: "ratelimitBoolean" };
  return readBy(form, (reader, place) => reader.readFlag(place, dialect));
}

/** Fields of a limit that do not apply to `unlimited: true`. */
const limitOnlyFields = {
  period: field(period, "A period of any length, instead of `unit`: 10s, 5m, 1h30m, 1d, 2w."),
  requests_per_unit: field(
    whole({ min: 0, max: hitsMax }),
    "Hits allowed in each period; 0 denies everything.",
  ),
  burst: field(
    whole({ min: 1, max: hitsMax }),
    "Hits that may arrive at once while the bucket is empty. Default: `requests_per_unit`.",
  ),
  ...algorithmFields,
  charge: field(
    choice({ what: "a way to charge" }, "settle"),
    "`settle`: the response reports the cost (`apply_on_stream_done`). The cost is " +
      "always charged, into debt of at most one more burst. While in debt, requests " +
      "are denied; with `quota_mode`, only together with all other quotas. A limit " +
      "in an envoyproxy/ratelimit file becomes `settle` at the first call of zero " +
      "hits.",
  ),
  peek: field(
    choice({ what: "a way to peek" }, "debt", "exhausted"),
    "When a call of zero hits is denied: when the limit is in debt, or as soon as " +
      "nothing remains.",
    { dependentDefault: "debt" },
  ),
  over: field(
    wordOr(["refuse"], inner(limitOver), "refuse, or a map: {delay: {max: 200ms}}"),
    "What happens to requests over the limit.",
    { dependentDefault: "refuse", added: "looser" },
  ),
  warnAt: field(
    warnAt,
    "The used ratio of the limit from which requests that pass have `warnHeaders`. Default: never.",
    { larger: "different" },
  ),
  warnHeaders: field(
    warnHeaders,
    "Headers of requests to the upstream from `warnAt` on. Default: `x-headgate-limit-warning` " +
      "with the limit's name, or `yes`.",
  ),
  overrideMax: overrideMaxField,
  spread: field(
    choice({ what: "a spread" }, "region", "global"),
    "Whose hits the limit counts: those of each region alone, or of all regions together. " +
      "`global` needs regions (HEADGATE_REGION_STORES); without them it is `region`.",
    { dependentDefault: "region" },
  ),
};

/** A limit. Source: envoyproxy/ratelimit, `YamlRateLimit` in src/config/config_impl.go. */
function formOf(dialect: Dialect) {
  const isOurs = dialect === "headgate";
  const name = ruledText(nameRule);
  const unit: Form = { kind: "words", words: units, ignoreCase: true };
  const { period: anyPeriod, requests_per_unit, burst, ...rest } = limitOnlyFields;
  const old = ["name", "requests_per_unit", "unlimited", "replaces"];
  const own = ["period", "burst", ...Object.keys(rest)];
  return object(
    {
      title: "a rate_limit",
      docs: "How many hits are allowed in each period.",
      ...(isOurs ? ourRules : { blank: old, own }),
    },
    {
      name: field(
        // As in envoyproxy/ratelimit, where an unnamed limit has an empty name.
        isOurs ? name : readBy(any(name, words("")), name.read),
        "Names the limit in headers and metrics. The limit keeps its state when " +
          "its period changes. Several limits of one key need different names or " +
          "different periods. Default: its period.",
      ),
      unit: field(
        // There, an empty unit beside `unlimited` counts as left out.
        readBy(isOurs ? unit : any(unit, words("")), (reader, place) =>
          reader.readChoice(place, units, { id: "HG142", what: "a unit", ignoreCase: true }),
        ),
        "The period for `requests_per_unit`. A month has 30 days, a year 365.",
      ),
      period: anyPeriod,
      requests_per_unit,
      burst,
      unlimited: field(
        dialectFlag(dialect),
        "No limit and no state: matching requests pass and are counted in metrics.",
        {
          default: false,
        },
      ),
      ...rest,
      replaces: field(replaces, "Limits that are skipped when a request matches this one.", {
        default: [],
      }),
    },
  );
}

const ourRules = {
  needed: [
    ["unit", "period", "unlimited"],
    ["requests_per_unit", "unlimited"],
  ],
  clashing: [
    ["unit", "period"],
    ["period", "time_zone"],
    ["burst", "time_zone"],
  ],
};

/** The form of a limit, by dialect. */
export const rateLimitForms = { ratelimit: formOf("ratelimit"), headgate: formOf("headgate") };

type LimitForm = (typeof rateLimitForms)[Dialect];

/** Reads one limit; undefined when it is wrong, with all its problems reported. */
export function readRateLimit(
  reader: NodeReader,
  node: ParsedNode,
  setting: LimitContext,
): RateLimit | undefined {
  const { dialect } = setting;
  const form = rateLimitForms[dialect];
  const block = Block.at(reader, node, form.shape);
  if (block === undefined) return undefined;
  const isNameless = dialect === "ratelimit" && isEmptyText(block, "name");
  const name = isNameless ? undefined : readField(form, block, "name");
  if (name !== undefined) setting.defineName(name);
  const named = name === undefined ? {} : { name };
  const replaced = readField(form, block, "replaces");
  if (readField(form, block, "unlimited")) {
    const isWhole = refuseTogether(block, dialect);
    return isWhole ? { kind: "unlimited", ...named, replaces: replaced, node } : undefined;
  }
  const limit = readLimit(block, setting);
  return limit && { kind: "limit", limit: { ...named, ...limit }, replaces: replaced, node };
}

function isEmptyText({ reader, fields }: Block, name: string): boolean {
  const written = fields.byName.get(name);
  const node = written && reader.contentOf(written);
  return isScalar(node) && node.value === "";
}

/** Refuses fields beside `unlimited`. In the `ratelimit` dialect, numbers there are ignored. */
function refuseTogether(block: Block, dialect: Dialect): boolean {
  const names = dialect === "headgate" ? ["unit", ...Object.keys(limitOnlyFields)] : ["unit"];
  const meant = names.filter((name) => {
    if (block.field(name) === undefined) return false;
    return dialect === "headgate" || !isEmptyText(block, name);
  });
  for (const name of meant) block.refusePair(name, "unlimited");
  return meant.length === 0;
}

function readLimit(block: Block, setting: LimitContext): Omit<Limit, "name"> | undefined {
  const { dialect, mode, defaults } = setting;
  const form = rateLimitForms[dialect];
  const pace = readPace(block, form);
  const algorithm = readAlgorithm(block, defaults.algorithm);
  refuseOffCalendar(block, pace?.unit);
  const hits = readHits(block, form, dialect);
  const burst = readBurst(block, form, hits);
  const charge = readCharge(block, form, mode);
  const peek = readField(form, block, "peek") ?? "debt";
  const over = readOver(block, form, { setting, charge, algorithm });
  const warn = readWarning(block, form, hits);
  const overrideMax = readField(form, block, "overrideMax") ?? defaults.overrideMax;
  if (pace === undefined || hits === undefined || burst === undefined) return undefined;
  if (!isWithinDrainTime(block, { ...pace, hits, burst })) return undefined;
  if (charge === undefined || algorithm === undefined) return undefined;
  // A limit that annotates or falls back refuses no request.
  const isSoft = over !== undefined && over.kind !== "delay";
  const role = charge === "settle" ? settledRole(mode) : isSoft ? "shadow" : mode;
  const counted = algorithm.kind === "gcra" ? {} : { algorithm };
  const spread = readSpread(block, readField(form, block, "spread"), {
    limit: { hits, burst, algorithm },
    regionCount: setting.regionCount,
  });
  const { onStoreFailure } = defaults;
  const most = overrideMax === undefined ? {} : { overrideMax };
  const soft = { ...(over !== undefined && { over }), ...(warn !== undefined && { warn }) };
  return {
    hits,
    ...pace,
    burst,
    ...counted,
    role,
    peek,
    onStoreFailure,
    ...soft,
    ...most,
    ...spread,
  };
}

/**
 * Reads `over`. It replaces a refusal, so only a limit that refuses by itself can have it. A delay
 * needs a limit that drains, because only that one knows when a request fits.
 */
function readOver(
  block: Block,
  form: LimitForm,
  { setting: { mode, needsExtProc, needsCluster }, charge, algorithm }: OverContext,
): OverLimit | undefined {
  const written = block.field("over");
  const over = readField(form, block, "over");
  if (written === undefined || over === undefined || over === "refuse") return undefined;
  if (mode === "quota") return block.refusePair("over", "quota_mode");
  if (charge === "settle") return block.refusePair("over", "charge");
  if (over.kind !== "delay" && mode === "shadow") return block.refusePair("over", "shadow_mode");
  if (over.kind === "delay" && algorithm?.kind === "fixed_window")
    return block.refusePair("over", "algorithm: fixed_window");
  if (over.kind === "annotate") return over;
  if (over.kind === "fallback" && over.to.kind === "cluster") {
    const { cluster } = over.to;
    needsCluster(cluster, () => warnOfCluster(block.reader, written.key, cluster));
  }
  needsExtProc(() => {
    const why = "because no service asks for this limit in ext_proc";
    const message = `the ${over.kind} has no effect, ${why}`;
    block.reader.warn(written.key, { id: over.kind === "delay" ? "HG173" : "HG174", message });
  });
  return over;
}

/** Reads the warning. A limit that denies everything admits no request to warn about. */
function readWarning(block: Block, form: LimitForm, hits: number | undefined): Limit["warn"] {
  const atRatio = readField(form, block, "warnAt");
  const headers = readField(form, block, "warnHeaders");
  if (block.field("warnAt") === undefined) {
    if (block.field("warnHeaders") !== undefined && block.isLeftOut("warnAt"))
      refuseIdleWarning(block);
    return undefined;
  }
  if (hits === 0) return block.refusePair("warnAt", "requests_per_unit: 0");
  if (atRatio === undefined) return undefined;
  const name = readField(form, block, "name") ?? "yes";
  return { atRatio, headers: headers ?? [{ name: "x-headgate-limit-warning", value: name }] };
}

interface OverContext {
  readonly setting: LimitContext;
  readonly charge: "settle" | "ask" | undefined;
  readonly algorithm: Algorithm | undefined;
}

/** Reports `warnHeaders` without a `warnAt` that determines when they are set. */
export function refuseIdleWarning(block: Block): undefined {
  const message = '"warnHeaders" has no threshold from which they are set';
  return block.report("warnHeaders", { id: "HG207", message, expected: "warnAt: 0.8 next to it" });
}

function readPace(block: Block, form: LimitForm): LimitPeriod | undefined {
  if (block.field("period") !== undefined) {
    const isTwice = block.field("unit") !== undefined;
    return isTwice ? block.refusePair("period", "unit") : readField(form, block, "period");
  }
  block.declared("unit", "second, minute, hour, day, ...");
  const unit = readField(form, block, "unit");
  return unit && { unit, unitMultiplier: 1, periodUs: unitSeconds[unit] * 1_000_000 };
}

/** Reads the hits. Left out in the `ratelimit` dialect, they are 0: every request is denied. */
function readHits(block: Block, form: LimitForm, dialect: Dialect): number | undefined {
  const name = "requests_per_unit";
  if (dialect === "ratelimit" && block.isLeftOut(name)) {
    const message = `"${name}" is missing, so it is 0 and every request is denied`;
    block.reader.warn(block.fields.node, { id: "HG170", message });
    return 0;
  }
  block.declared(name, "a whole number; 0 blocks everything");
  return readField(form, block, name);
}

/** Reads the burst. Default: the hits that drain in one period. */
function readBurst(block: Block, form: LimitForm, hits: number | undefined): number | undefined {
  const written = block.field("burst");
  if (written === undefined) return hits;
  const burst = readField(form, block, "burst");
  if (hits !== 0) return burst;
  const message = '"burst" has no effect with "requests_per_unit: 0", which denies everything';
  return block.reader.report(written.key, { id: "HG126", message });
}

function readCharge(block: Block, form: LimitForm, mode: Denial): "settle" | "ask" | undefined {
  if (block.field("charge") === undefined) return "ask";
  // In shadow mode, no request is refused for the debt that `settle` would keep.
  if (mode === "shadow") return block.refusePair("charge", "shadow_mode");
  return readField(form, block, "charge");
}

/** A full bucket must be empty again within `drainTimeUsMax`: burst / (hits / period). */
function isWithinDrainTime(
  block: Block,
  { hits, burst, periodUs }: { hits: number; burst: number; periodUs: number },
): boolean {
  if (BigInt(burst) * BigInt(periodUs) <= BigInt(drainTimeUsMax) * BigInt(hits)) return true;
  if (hits === 0) return true;
  const place = block.field("burst")?.value ?? block.fields.node;
  const message = "a full bucket of this limit takes longer than ten years to drain";
  block.reader.report(place, { id: "HG144", message });
  return false;
}
