import type { Algorithm, LimitUnit } from "../../core/limits/limit.js";
import { quoteText } from "../problems/problem.js";
import { findNearestName } from "../text/nearest-name.js";
import type { Field, Fields, NodeReader } from "../text/node-reader.js";
import type { TextRule } from "../text/text-rules.js";

const timeZoneRule: TextRule = {
  charsMax: 64,
  forbidden: /[^A-Za-z0-9_+\-/]/,
  expected: "a name of the IANA time zone database, such as Europe/Stockholm or UTC",
};

/** Units that a calendar divides time into; those that are shorter are the same everywhere. */
const calendarUnits: readonly LimitUnit[] = ["hour", "day", "week", "month", "year"];

/**
 * Reads `algorithm` and `time_zone`, which implies windows; undefined when they are wrong. A limit
 * with a `burst` drains, whatever the default is: windows have none.
 */
export function readAlgorithm(
  reader: NodeReader,
  fields: Fields,
  usual: Algorithm["kind"],
): Algorithm | undefined {
  const field = fields.byName.get("algorithm");
  const zoneField = fields.byName.get("time_zone");
  const chosen = field
    ? reader.readChoice(field, algorithmKinds, { id: "HG133", what: "an algorithm" })
    : zoneField
      ? "fixed_window"
      : defaultOf(fields, usual);
  const timeZone = zoneField && readTimeZone(reader, zoneField);
  if (field !== undefined && chosen === undefined) return undefined;
  if (zoneField !== undefined && timeZone === undefined) return undefined;
  if (chosen !== "fixed_window") {
    return zoneField ? refuse(reader, zoneField, "algorithm: gcra") : { kind: "gcra" };
  }
  const burst = fields.byName.get("burst");
  if (burst !== undefined) return refuse(reader, burst, "algorithm: fixed_window");
  return timeZone === undefined ? { kind: chosen } : { kind: chosen, timeZone };
}

function defaultOf(fields: Fields, usual: Algorithm["kind"]): Algorithm["kind"] {
  return fields.byName.has("burst") ? "gcra" : usual;
}

/** How a limit counts. */
export const algorithmKinds: readonly Algorithm["kind"][] = ["gcra", "fixed_window"];

/** A calendar has units; a period of 10 days begins nowhere in it. */
export function refuseOffCalendar(
  reader: NodeReader,
  fields: Fields,
  unit: LimitUnit | undefined,
): void {
  const zone = fields.byName.get("time_zone");
  if (zone === undefined) return;
  if (fields.byName.has("period")) refuse(reader, zone, "period");
  else if (unit !== undefined && !calendarUnits.includes(unit)) {
    refuse(reader, zone, `unit: ${unit}`);
  }
}

function refuse(reader: NodeReader, field: Field, other: string): undefined {
  const message = `"${field.name}" and "${other}" exclude each other`;
  return reader.report(field.key, { id: "HG126", message, expected: "one of the two" });
}

function readTimeZone(reader: NodeReader, field: Field): string | undefined {
  const text = reader.readText(field, timeZoneRule);
  if (text === undefined || isTimeZone(text)) return text;
  const { expected } = timeZoneRule;
  const suggestion = findNearestName(text, Intl.supportedValuesOf("timeZone"));
  const message = `${quoteText(text)} is no time zone that is known here`;
  const place = field.value ?? field.key;
  return reader.reportContent(place, { id: "HG145", message, expected, suggestion });
}

/** Offsets like `+02:00`, which some versions of Node take, are refused before. */
function isTimeZone(text: string): boolean {
  try {
    return (
      /^[A-Za-z]/.test(text) && new Intl.DateTimeFormat("en", { timeZone: text }) !== undefined
    );
  } catch {
    return false;
  }
}
