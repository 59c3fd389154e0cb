import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Clock } from "../core/clock.js";
import { parseTimestampUs } from "../core/timestamp.js";
import { parseDurationMs } from "../policy/duration.js";
import { usageFailure } from "./admin-command.js";

/** A moment that somebody wrote, and how far it lies from now. */
interface Asked {
  readonly flag: string;
  readonly text: string;
  readonly clock: Clock;
}

/**
 * A duration from now on: `3d`.
 *
 * @throws CommandFailure
 */
export function momentAfter({ flag, text, clock }: Asked): Timestamp {
  const ms = parseDurationMs(text);
  if (ms === undefined || ms === 0) throw usageFailure(`${flag} must be a duration, such as 3d`);
  return timestampFromMs(Math.floor(clock.epochUs() / 1_000) + ms);
}

/**
 * A time as RFC 3339 has it.
 *
 * @throws CommandFailure
 */
export function momentAt({ flag, text }: Omit<Asked, "clock">): Timestamp {
  const us = parseTimestampUs(text);
  if (us === undefined) {
    throw usageFailure(`${flag} must be a time such as 2026-11-27T12:00:00Z`);
  }
  return timestampFromMs(Math.floor(us / 1_000));
}

/**
 * A duration before now, or a time: `2h`, `2026-11-27T12:00:00Z`.
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
