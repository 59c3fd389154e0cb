import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Clock } from "../../core/base/clock.js";
import { parseTimestampUs } from "../../core/base/timestamp.js";
import { parseDurationMs } from "../../policy/text/duration.js";
import { usageFailure } from "../terminal/command-failure.js";

/** A time given by the user, and the clock that it is relative to. */
interface Asked {
  readonly flag: string;
  readonly text: string;
  readonly clock: Clock;
}

/**
 * Reads a duration from now on: `3d`.
 *
 * @throws CommandFailure
 */
export function momentAfter({ flag, text, clock }: Asked): Timestamp {
  const ms = parseDurationMs(text);
  if (ms === undefined || ms === 0) throw usageFailure(`${flag} must be a duration, such as 3d`);
  return timestampFromMs(Math.floor(clock.epochUs() / 1_000) + ms);
}

const daysOfWeek = [
  "sunday",
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
] as const;

const dayMs = 86_400_000;

/**
 * Reads a time in RFC 3339, or the start of a day in UTC: `2026-11-27`, or `friday` and `fri` for
 * the next one.
 *
 * @throws CommandFailure
 */
export function momentAt({ flag, text, clock }: Asked): Timestamp {
  const day = daysOfWeek.findIndex((name) => {
    const word = text.toLowerCase();
    return word === name || word === name.slice(0, 3);
  });
  if (day !== -1) {
    const today = Math.floor(clock.epochUs() / 1_000 / dayMs);
    // The first of January 1970 was a Thursday.
    const days = (day - ((today + 4) % 7) + 7) % 7;
    return timestampFromMs((today + (days === 0 ? 7 : days)) * dayMs);
  }
  const us = parseTimestampUs(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (us === undefined) {
    throw usageFailure(`${flag} must be a time such as 2026-11-27T12:00:00Z, 2026-11-27 or friday`);
  }
  return timestampFromMs(Math.floor(us / 1_000));
}

/**
 * Reads a duration before now, or a time: `2h`, `2026-11-27T12:00:00Z`.
 *
 * @throws CommandFailure
 */
export function momentSince(asked: Asked): Timestamp {
  const { flag, text, clock } = asked;
  const ms = parseDurationMs(text);
  if (ms !== undefined) return timestampFromMs(Math.floor(clock.epochUs() / 1_000) - ms);
  const us = parseTimestampUs(text);
  if (us === undefined) {
    throw usageFailure(`${flag} must be a duration such as 2h, or a time: 2026-11-27T12:00:00Z`);
  }
  return timestampFromMs(Math.floor(us / 1_000));
}
