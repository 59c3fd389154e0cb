import {
  isPattern,
  type Limit,
  type LimitUnit,
  limitsOf,
  type Role,
  type Rule,
} from "../../core/limits/limit.js";
import { type DifferenceRow, joined } from "../migration/difference-row.js";
import { type DifferenceId, differenceRows } from "../migration/differences.js";

/** Maximum number of hits that a limit admits, however requests arrive. */
interface WorstCase {
  /** At once: for the reference around a window's edge, for GCRA from an unused bucket. */
  readonly atOnceCount: number;
  /** Between two edges of the unit, without earlier use. */
  readonly inWindowCount: number;
}

/** One limit of a configuration, in envoyproxy/ratelimit and in Headgate. */
export interface LimitComparison {
  readonly domain: string;
  /** The rule's label. */
  readonly rule: string;
  readonly name?: string;
  readonly requestsPerUnit: number;
  readonly unit: LimitUnit;
  readonly role: Role;
  readonly reference: WorstCase;
  readonly headgate: WorstCase;
  /** What to write if the number must be kept in each window. */
  readonly suggestion?: string;
}

/** A feature of a configuration that means the same in both. */
interface SameFeature {
  readonly what: string;
  readonly ruleCount: number;
}

/** A difference that affects the configuration. */
export interface MetDifference extends DifferenceRow {
  readonly id: DifferenceId;
  readonly ruleCount: number;
}

/** What changes when Headgate takes over a configuration of envoyproxy/ratelimit. */
export interface Comparison {
  readonly limits: readonly LimitComparison[];
  readonly same: readonly SameFeature[];
  readonly differences: readonly MetDifference[];
}

/** Compares what the rules of envoyproxy/ratelimit files mean there and in Headgate. */
export function compareWithReference(rules: readonly Rule[]): Comparison {
  const countOf = (concerns: (rule: Rule) => boolean): number => rules.filter(concerns).length;
  return {
    limits: rules.flatMap((rule) => limitsOf(rule).map((limit) => compareLimit(rule, limit))),
    same: sameFeatures
      .map(({ what, concerns }) => ({ what, ruleCount: countOf(concerns) }))
      .filter(({ ruleCount }) => ruleCount > 0),
    differences: metDifferences
      .map(([id, concerns]) => ({ id, ...differenceRows[id], ruleCount: countOf(concerns) }))
      .filter(({ ruleCount }) => ruleCount > 0),
  };
}

/** Units from which on people expect calendar periods. */
const longUnits: readonly LimitUnit[] = ["day", "week", "month", "year"];

/**
 * With b hits a unit, the reference admits b before an edge and b after it, and b in a window. GCRA
 * admits at most b + floor(r * t) in any interval t: b at once, and 2 b - 1 in a window, which is a
 * moment shorter than the unit. Example: 1,000 a day are 2,000 at once and 1,000 a day there, 1,000
 * at once and 1,999 on the first day here. A limit that counts in windows admits the same.
 */
function compareLimit(rule: Rule, limit: Limit): LimitComparison {
  const { hits, unit, role } = limit;
  const reference = { atOnceCount: 2 * hits, inWindowCount: hits };
  const isSmooth = isSmoothLimit(limit);
  const isExceeded = isSmooth && longUnits.includes(unit) && hits > 1 && role !== "shadow";
  return {
    domain: rule.domain,
    rule: rule.label,
    ...(limit.name === undefined ? {} : { name: limit.name }),
    requestsPerUnit: hits,
    unit,
    role,
    reference,
    headgate: isSmooth
      ? { atOnceCount: hits, inWindowCount: Math.max(0, 2 * hits - 1) }
      : reference,
    ...(isExceeded ? { suggestion: "algorithm: fixed_window" } : {}),
  };
}

/** Reports whether it drains. Otherwise it counts in windows. */
function isSmoothLimit({ algorithm }: Limit): boolean {
  return algorithm?.kind !== "fixed_window";
}

const isLimited = ({ effect }: Rule): boolean => effect.kind === "limited";

function hasRole(role: Role): (rule: Rule) => boolean {
  return (rule) => limitsOf(rule).some((limit) => limit.role === role);
}

const sameFeatures: readonly {
  readonly what: string;
  readonly concerns: (rule: Rule) => boolean;
}[] = [
  {
    what: joined(
      "how requests are matched: level by level, first the exact value, then patterns in",
      "file order, then the key alone",
    ),
    concerns: () => true,
  },
  {
    what: "no `rate_limit`: a request that matches nothing deeper passes",
    concerns: ({ effect }) => effect.kind === "none",
  },
  {
    what: "`unlimited`: passes without a counter",
    concerns: ({ effect }) => effect.kind === "unlimited",
  },
  {
    what: "`requests_per_unit: 0`, written or left out: every request is denied",
    concerns: (rule) => limitsOf(rule).some(({ hits }) => hits === 0),
  },
  { what: "`shadow_mode`: requests are counted and never denied", concerns: hasRole("shadow") },
  {
    what: "`quota_mode`: a request is denied when all of its quota limits are over",
    concerns: hasRole("quota"),
  },
  {
    what: "`replaces`: the named limits are skipped",
    concerns: ({ replaces }) => replaces !== undefined,
  },
  {
    what: "`share_threshold`: all values of the pattern share one counter",
    concerns: ({ sharePatterns }) => sharePatterns !== undefined,
  },
  {
    what: "`detailed_metric`, `value_to_metric`: values in metrics",
    concerns: ({ metricPath }) => metricPath !== undefined,
  },
  {
    what: "`metadata`: in the response's dynamic metadata",
    concerns: ({ metadata }) => metadata !== undefined,
  },
  {
    what: "units: a month has 30 days, a year 365",
    concerns: (rule) => limitsOf(rule).some(({ unit }) => unit === "month" || unit === "year"),
  },
];

/** Differences that may affect a valid configuration; `stricter` ones were refused before. */
const metDifferences: readonly (readonly [DifferenceId, (rule: Rule) => boolean])[] = [
  ["smooth-limits", (rule) => limitsOf(rule).some(isSmoothLimit)],
  ["store-failure", (rule) => limitsOf(rule).some((limit) => limit.onStoreFailure !== "error")],
  ["key-patterns", ({ path }) => path.some(({ key }) => key.includes("*"))],
  ["denied-hits", isLimited],
  ["later-costs", isLimited],
  ["retry-time", isLimited],
  [
    "key-and-value",
    ({ path }) =>
      path.some((step) => isPattern(step) || `${step.key}${step.value ?? ""}`.includes("_")),
  ],
  [
    "kept-metadata",
    ({ metadata, metricPath }) => metadata !== undefined && metricPath !== undefined,
  ],
  ["bounded-keys", (rule) => isLimited(rule) && rule.path.some(({ value }) => value === undefined)],
  [
    "calendar-time",
    (rule) => limitsOf(rule).some(({ unit }) => ["week", "month", "year"].includes(unit)),
  ],
];
