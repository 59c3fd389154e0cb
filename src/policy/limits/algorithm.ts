import type { Algorithm, LimitUnit } from "../../core/limits/limit.js";
import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import { choice, readBy, text } from "../text/form.js";
import { findNearestName } from "../text/nearest-name.js";
import { field, readField } from "../text/object.js";
import type { TextRule } from "../text/text-rules.js";

const timeZoneRule: TextRule = {
  charsMax: 64,
  forbidden: /[^A-Za-z0-9_+\-/]/,
  expected: "a name of the IANA time zone database, such as Europe/Stockholm or UTC",
};

/** A time zone that this process supports. */
export const timeZone = readBy(
  text(timeZoneRule, /^[A-Za-z][A-Za-z0-9_+/-]*$/),
  (reader, place) => {
    const written = reader.readText(place, timeZoneRule);
    if (written === undefined || isTimeZone(written)) return written;
    const { expected } = timeZoneRule;
    const suggestion = findNearestName(written, Intl.supportedValuesOf("timeZone"));
    const message = `${quoteText(written)} is not a known time zone`;
    const node = place.value ?? place.key;
    return reader.reportContent(node, { id: "HG145", message, expected, suggestion });
  },
);

/** Fields of a limit that choose how it counts. */
export const algorithmFields = {
  algorithm: field(
    choice({ what: "an algorithm" }, "gcra", "fixed_window"),
    "`gcra` replenishes hits evenly. `fixed_window` allows `requests_per_unit` " +
      "hits in each window, counted from 1970 as in envoyproxy/ratelimit.",
    { dependentDefault: "gcra" },
  ),
  time_zone: field(
    timeZone,
    "The time zone in which days begin, such as Europe/Stockholm, for units from " +
      "`hour` up. Weeks begin on Monday. Implies `fixed_window`.",
  ),
};

const limit = { rows: algorithmFields };

/** Units that depend on the time zone; shorter ones are the same everywhere. */
const calendarUnits: readonly LimitUnit[] = ["hour", "day", "week", "month", "year"];

/**
 * Reads `algorithm` and `time_zone`, which implies windows; undefined if they are wrong. A limit
 * with a `burst` uses `gcra`, whatever the default is, because windows have no burst.
 */
export function readAlgorithm(block: Block, inherited: Algorithm["kind"]): Algorithm | undefined {
  const isNamed = block.field("algorithm") !== undefined;
  const isZoned = block.field("time_zone") !== undefined;
  const written = readField(limit, block, "algorithm");
  const zone = readField(limit, block, "time_zone");
  if (isNamed && written === undefined) return undefined;
  if (isZoned && zone === undefined) return undefined;
  const kind = written ?? (isZoned ? "fixed_window" : defaultOf(block, inherited));
  if (kind !== "fixed_window") {
    return isZoned ? block.refusePair("time_zone", "algorithm: gcra") : { kind: "gcra" };
  }
  if (block.field("burst") !== undefined)
    return block.refusePair("burst", "algorithm: fixed_window");
  return zone === undefined ? { kind } : { kind, timeZone: zone };
}

function defaultOf(block: Block, inherited: Algorithm["kind"]): Algorithm["kind"] {
  return block.field("burst") === undefined ? inherited : "gcra";
}

/** Refuses `time_zone` with a period or a short unit. A period of 10 days has no calendar start. */
export function refuseOffCalendar(block: Block, unit: LimitUnit | undefined): void {
  if (block.field("time_zone") === undefined) return;
  if (block.field("period") !== undefined) block.refusePair("time_zone", "period");
  else if (unit !== undefined && !calendarUnits.includes(unit)) {
    block.refusePair("time_zone", `unit: ${unit}`);
  }
}

/** The pattern first refuses offsets like `+02:00`, which some versions of Node accept. */
function isTimeZone(text: string): boolean {
  try {
    return (
      /^[A-Za-z]/.test(text) && new Intl.DateTimeFormat("en", { timeZone: text }) !== undefined
    );
  } catch {
    return false;
  }
}
