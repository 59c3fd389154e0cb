import { isScalar, type ParsedNode } from "yaml";
import {
  type Denial,
  drainTimeUsMax,
  hitsMax,
  type Limit,
  type LimitDefaults,
  type LimitUnit,
  settledRole,
  unitSeconds,
} from "../../core/limits/limit.js";
import { multiplierMax } from "../../core/limits/override.js";
import { quoteText } from "../problems/problem.js";
import type { Field, Fields, NodeReader } from "../text/node-reader.js";
import { parsePeriod, periodSecondsMax, unitOfPeriod } from "../text/period.js";
import { type Dialect, rateLimitShapes } from "../text/shapes.js";
import { nameRule } from "../text/text-rules.js";
import { readAlgorithm, refuseOffCalendar } from "./algorithm.js";
import { type ReplacedName, readReplaces } from "./replaces.js";

/** What a `rate_limit` says; `node` is where (an alias of it), for problems found later. */
export type RateLimit = {
  readonly node: ParsedNode;
  /** As they are written: a name may stand twice. */
  readonly replaces: readonly ReplacedName[];
} & (
  | { readonly kind: "limit"; readonly limit: Limit }
  | { readonly kind: "unlimited"; readonly name?: string }
);

/** What its descriptor says about a limit. */
export interface LimitSetting {
  readonly dialect: Dialect;
  readonly mode: Denial;
  readonly defaults: LimitDefaults;
  /** Told the name of each limit, also where the rest of the limit is wrong. */
  readonly defineName: (name: string) => void;
}

/** Periods that have a name. */
export const units: readonly LimitUnit[] = [
  "second",
  "minute",
  "hour",
  "day",
  "week",
  "month",
  "year",
];

/** Names that say something about a limit, which `unlimited: true` has not. */
const limitOnlyNames: Readonly<Record<Dialect, readonly string[]>> = {
  // A number beside `unlimited` means nothing there, and is taken.
  ratelimit: ["unit"],
  headgate: [
    "unit",
    "period",
    "requests_per_unit",
    "burst",
    "charge",
    "peek",
    "algorithm",
    "time_zone",
    "overrideMax",
  ],
};

/** Reads one limit; undefined when it is wrong, with all its problems reported. */
export function readRateLimit(
  reader: NodeReader,
  node: ParsedNode,
  setting: LimitSetting,
): RateLimit | undefined {
  const { dialect } = setting;
  const fields = reader.readMap(node, rateLimitShapes[dialect]);
  if (fields === undefined) return undefined;
  const name = readName(reader, fields, dialect);
  if (name !== undefined) setting.defineName(name);
  const named = name === undefined ? {} : { name };
  const replacesField = fields.byName.get("replaces");
  const replaces = replacesField ? readReplaces(reader, replacesField) : [];
  const unlimitedField = fields.byName.get("unlimited");
  if (unlimitedField !== undefined && reader.readFlag(unlimitedField, dialect) === true) {
    const isWhole = refuseTogether(reader, { fields, unlimited: unlimitedField, dialect });
    return isWhole ? { kind: "unlimited", ...named, replaces, node } : undefined;
  }
  const limit = readLimit(reader, fields, setting);
  return limit && { kind: "limit", limit: { ...named, ...limit }, replaces, node };
}

function readName(reader: NodeReader, fields: Fields, dialect: Dialect): string | undefined {
  const field = fields.byName.get("name");
  if (field === undefined) return undefined;
  // As in envoyproxy/ratelimit, where a limit without a name has an empty one.
  if (dialect === "ratelimit" && isEmptyText(reader, field)) return undefined;
  return reader.readText(field, nameRule);
}

function isEmptyText(reader: NodeReader, field: Field): boolean {
  const node = reader.contentOf(field);
  return isScalar(node) && node.value === "";
}

function refuseTogether(
  reader: NodeReader,
  { fields, unlimited, dialect }: { fields: Fields; unlimited: Field; dialect: Dialect },
): boolean {
  const others = limitOnlyNames[dialect].flatMap((name) => fields.byName.get(name) ?? []);
  const meant = others.filter((other) => dialect === "headgate" || !isEmptyText(reader, other));
  for (const other of meant) reportPair(reader, other, unlimited.name);
  return meant.length === 0;
}

function reportPair(reader: NodeReader, field: Field, other: string): undefined {
  const message = `"${field.name}" and "${other}" exclude each other`;
  return reader.report(field.key, { id: "HG126", message, expected: "one of the two" });
}

function readLimit(
  reader: NodeReader,
  fields: Fields,
  { dialect, mode, defaults }: LimitSetting,
): Omit<Limit, "name"> | undefined {
  const pace = readPace(reader, fields);
  const algorithm = readAlgorithm(reader, fields, defaults.algorithm);
  refuseOffCalendar(reader, fields, pace?.unit);
  const hits = readHits(reader, fields, dialect);
  const burst = readBurst(reader, fields, hits);
  const charge = readCharge(reader, fields, mode);
  const peekField = fields.byName.get("peek");
  const peek = peekField
    ? reader.readChoice(peekField, ["debt", "exhausted"], { id: "HG133", what: "a way to peek" })
    : "debt";
  const overrideMax = readOverrideMax(reader, fields) ?? defaults.overrideMax;
  if (pace === undefined || hits === undefined || burst === undefined) return undefined;
  if (!isWithinDrainTime(reader, fields, { ...pace, hits, burst })) return undefined;
  if (charge === undefined || peek === undefined || algorithm === undefined) return undefined;
  const role = charge === "settle" ? settledRole(mode) : mode;
  const counted = algorithm.kind === "gcra" ? {} : { algorithm };
  const { onStoreFailure } = defaults;
  const most = overrideMax === undefined ? {} : { overrideMax };
  return { hits, ...pace, burst, ...counted, role, peek, onStoreFailure, ...most };
}

/** `overrideMax` of a limit or a domain: how many times as much an override may give. */
export function readOverrideMax(reader: NodeReader, fields: Fields): number | undefined {
  const field = fields.byName.get("overrideMax");
  return field && reader.readWhole(field, { min: 1, max: multiplierMax });
}

/** A period, as a limit has it. */
export type Pace = Pick<Limit, "unit" | "unitMultiplier" | "periodUs">;

function readPace(reader: NodeReader, fields: Fields): Pace | undefined {
  const periodField = fields.byName.get("period");
  const unitField = fields.byName.get("unit");
  if (periodField !== undefined) {
    if (unitField !== undefined) return reportPair(reader, periodField, "unit");
    return readPeriod(reader, periodField);
  }
  const field = reader.requiredField(fields, "unit", "second, minute, hour, day, ...");
  if (field === undefined) return undefined;
  const unit = reader.readChoice(field, units, { id: "HG142", what: "a unit", ignoreCase: true });
  if (unit === undefined) return undefined;
  return { unit, unitMultiplier: 1, periodUs: unitSeconds[unit] * 1_000_000 };
}

/** Reads a period of whole seconds; undefined, and reported, where it is none. */
export function readPeriod(reader: NodeReader, field: Field): Pace | undefined {
  const expected = "a period like 10s, 5m, 1h30m, 1d or 2w";
  const node = reader.required(field, expected);
  const text = node && reader.readText(field, { charsMax: 64, forbidden: /\p{Cc}/u, expected });
  if (node === undefined || text === undefined) return undefined;
  const period = parsePeriod(text);
  if (period.kind === "unreadable") {
    const suggestion = /^[1-9][0-9]*$/.test(text) ? `${quoteText(text).slice(1, -1)}s` : undefined;
    const message = `${quoteText(text)} is not a period`;
    return reader.reportContent(node, { id: "HG143", message, expected, suggestion });
  }
  if (period.seconds > periodSecondsMax) {
    const message = `${quoteText(text)} is longer than ten years`;
    return reader.reportContent(node, { id: "HG144", message });
  }
  return { ...unitOfPeriod(period.seconds), periodUs: period.seconds * 1_000_000 };
}

/** Left out it is 0 in the reference's dialect: nobody passes. */
function readHits(reader: NodeReader, fields: Fields, dialect: Dialect): number | undefined {
  const name = "requests_per_unit";
  const field = fields.byName.get(name);
  const isLeftOut = field === undefined && fields.isComplete && !fields.misspelt.has(name);
  if (isLeftOut && dialect === "ratelimit") {
    const message = `"${name}" is missing, so it is 0 and every request is refused`;
    reader.warn(fields.node, { id: "HG170", message });
    return 0;
  }
  const expected = "a whole number; 0 blocks everything";
  const wanted = reader.requiredField(fields, name, expected);
  return wanted && reader.readWhole(wanted, { min: 0, max: hitsMax });
}

/** As many as drain in one period, unless said otherwise. */
function readBurst(
  reader: NodeReader,
  fields: Fields,
  hits: number | undefined,
): number | undefined {
  const field = fields.byName.get("burst");
  if (field === undefined) return hits;
  const burst = reader.readWhole(field, { min: 1, max: hitsMax });
  if (hits !== 0) return burst;
  const message = '"burst" has no meaning where "requests_per_unit" is 0: nothing ever passes';
  return reader.report(field.key, { id: "HG126", message });
}

function readCharge(
  reader: NodeReader,
  fields: Fields,
  mode: Denial,
): "settle" | "ask" | undefined {
  const field = fields.byName.get("charge");
  if (field === undefined) return "ask";
  // Nobody is refused for the debt that it would keep.
  if (mode === "shadow") return reportPair(reader, field, "shadow_mode");
  return reader.readChoice(field, ["settle"], { id: "HG133", what: "a way to charge" });
}

/** A full bucket must be empty again within `drainTimeUsMax`: burst / (hits / period). */
function isWithinDrainTime(
  reader: NodeReader,
  fields: Fields,
  { hits, burst, periodUs }: { hits: number; burst: number; periodUs: number },
): boolean {
  if (BigInt(burst) * BigInt(periodUs) <= BigInt(drainTimeUsMax) * BigInt(hits)) return true;
  if (hits === 0) return true;
  const place = fields.byName.get("burst")?.value ?? fields.node;
  const message = "a full bucket of this limit takes longer than ten years to drain";
  reader.report(place, { id: "HG144", message });
  return false;
}
