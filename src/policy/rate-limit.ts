import type { ParsedNode } from "yaml";
import {
  drainTimeUsMax,
  type FailureMode,
  hitsMax,
  type Limit,
  type LimitUnit,
  unitSeconds,
} from "../core/limit.js";
import type { Field, Fields, NodeReader } from "./node-reader.js";
import { parsePeriod, periodSecondsMax, unitOfPeriod } from "./period.js";
import { quoteText } from "./problem.js";
import { type Dialect, rateLimitShapes } from "./shapes.js";
import { nameRule } from "./text-rules.js";

/** What a `rate_limit` says; `node` is where (an alias of it), for problems found later. */
export type RateLimit =
  | { readonly kind: "limit"; readonly limit: Limit; readonly node: ParsedNode }
  | { readonly kind: "unlimited"; readonly name?: string; readonly node: ParsedNode };

/** What its descriptor says about a limit. */
export interface LimitSetting {
  readonly dialect: Dialect;
  readonly isShadow: boolean;
  readonly onStoreFailure: FailureMode;
}

const units: readonly LimitUnit[] = ["second", "minute", "hour", "day", "week", "month", "year"];

/** Names that say something about a limit, which `unlimited: true` has not. */
const limitOnlyNames = ["unit", "period", "requests_per_unit", "burst", "charge", "peek"];

/** Reads one limit; undefined when it is wrong, with all its problems reported. */
export function readRateLimit(
  reader: NodeReader,
  node: ParsedNode,
  setting: LimitSetting,
): RateLimit | undefined {
  const fields = reader.readMap(node, rateLimitShapes[setting.dialect]);
  if (fields === undefined) return undefined;
  const nameField = fields.byName.get("name");
  const name = nameField && reader.readText(nameField, nameRule);
  const named = name === undefined ? {} : { name };
  const unlimitedField = fields.byName.get("unlimited");
  if (unlimitedField !== undefined && reader.readFlag(unlimitedField) === true) {
    const isWhole = refuseTogether(reader, fields, unlimitedField);
    return isWhole ? { kind: "unlimited", ...named, node } : undefined;
  }
  const limit = readLimit(reader, fields, setting);
  return limit && { kind: "limit", limit: { ...named, ...limit }, node };
}

function refuseTogether(reader: NodeReader, fields: Fields, unlimited: Field): boolean {
  const others = limitOnlyNames.flatMap((name) => fields.byName.get(name) ?? []);
  for (const other of others) reportPair(reader, other, unlimited.name);
  return others.length === 0;
}

function reportPair(reader: NodeReader, field: Field, other: string): undefined {
  const message = `"${field.name}" and "${other}" exclude each other`;
  return reader.report(field.key, { id: "HG126", message, expected: "one of the two" });
}

function readLimit(
  reader: NodeReader,
  fields: Fields,
  { isShadow, onStoreFailure }: LimitSetting,
): Omit<Limit, "name"> | undefined {
  const pace = readPace(reader, fields);
  const hits = readHits(reader, fields);
  const burst = readBurst(reader, fields, hits);
  const charge = readCharge(reader, fields, isShadow);
  const peekField = fields.byName.get("peek");
  const peek = peekField
    ? reader.readChoice(peekField, ["debt", "exhausted"], { id: "HG133", what: "a way to peek" })
    : "debt";
  if (pace === undefined || hits === undefined || burst === undefined) return undefined;
  if (!isWithinDrainTime(reader, fields, { ...pace, hits, burst })) return undefined;
  if (charge === undefined || peek === undefined) return undefined;
  const role = charge === "settle" ? "settle" : isShadow ? "shadow" : "enforce";
  return { hits, ...pace, burst, role, peek, onStoreFailure };
}

type Pace = Pick<Limit, "unit" | "unitMultiplier" | "periodUs">;

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

function readPeriod(reader: NodeReader, field: Field): Pace | undefined {
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

function readHits(reader: NodeReader, fields: Fields): number | undefined {
  const expected = "a whole number; 0 blocks everything";
  const field = reader.requiredField(fields, "requests_per_unit", expected);
  return field && reader.readWhole(field, { min: 0, max: hitsMax });
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
  isShadow: boolean,
): "settle" | "ask" | undefined {
  const field = fields.byName.get("charge");
  if (field === undefined) return "ask";
  // A settled charge is stored whatever it finds; a shadow limit never denies. Both is neither.
  if (isShadow) return reportPair(reader, field, "shadow_mode");
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
