import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import { formatTimestamp, millisecondsOf } from "../../core/base/timestamp.js";
import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import { visibleText } from "../../policy/problems/problem.js";
import { formatDuration } from "../../policy/text/duration.js";
import type { Plain } from "../../rpc/codec/plain-message.js";

/**
 * Returns a count with separators between thousands: `12,345`, and at most `placesMax` decimals.
 * `toLocaleString` is not used, because its first call takes 13 ms of CPU.
 */
export function countText(count: number | bigint, placesMax = 3): string {
  const text = typeof count === "bigint" ? String(count) : String(Number(count.toFixed(placesMax)));
  const [whole = "", ...decimals] = text.split(".");
  return [whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ","), ...decimals].join(".");
}

/** Returns a part as `12.5 %`. */
export function percentText(ratio: number): string {
  const percent = 100 * ratio;
  return `${percent > 0 && percent < 0.1 ? "<0.1" : percent.toFixed(1)} %`;
}

/** Returns hits per second, or per longer unit for low rates: `1,200/s`, `12.5/min`, `3/day`. */
export function rateText(perSecond: number): string {
  const unit = rateUnits.find(({ seconds }) => perSecond * seconds >= 1) ?? rateUnits[0];
  const count = perSecond * unit.seconds;
  const places = count < 10 ? 2 : count < 100 ? 1 : 0;
  return `${countText(count, places)}/${unit.name}`;
}

const rateUnits = [
  { name: "s", seconds: 1 },
  { name: "min", seconds: 60 },
  { name: "h", seconds: 3_600 },
  { name: "day", seconds: 86_400 },
] as const;

/** Returns a wait, rounded up: `180ms`, `1.8s`, `2m5s`. */
export function waitText(duration: Plain<Duration>): string {
  const ms = millisecondsOf(duration);
  if (ms < 1_000) return `${Math.ceil(ms)}ms`;
  if (ms < 60_000) return `${Math.ceil(ms / 100) / 10}s`;
  return formatDuration(Math.ceil(ms / 1_000) * 1_000);
}

/** Returns a limit's period in the notation of policies: `10s`. */
export function periodText(duration: Plain<Duration> | undefined): string {
  return duration === undefined ? "?" : formatDuration(millisecondsOf(duration));
}

/** Returns a time in UTC, to the second; empty if there is none. */
export function timeText(time: Plain<Timestamp> | undefined): string {
  return time === undefined ? "" : formatTimestamp(millisecondsOf(time) * 1_000);
}

/** Returns only the time of day in UTC, with milliseconds: `12:00:03.250`. */
export function clockText(time: Plain<Timestamp> | undefined): string {
  if (time === undefined) return "";
  const millis = String(Math.floor((time.nanos ?? 0) / 1_000_000)).padStart(3, "0");
  return `${timeText(time).slice(11, 19)}.${millis}`;
}

/** Returns texts of policies and callers in one line without terminal control characters. */
export function safeText(text: string): string {
  return visibleText(text);
}

/** Returns a descriptor in the notation of commands: `plan=free,user=ann`. */
export function entriesText(entries: readonly DescriptorEntry[]): string {
  return safeText(formatEntries(entries));
}

/** Reports whether a table has rows of several replicas and needs a column for them. */
export function isOfFleet(rows: readonly { readonly replica: string }[]): boolean {
  return rows.some(({ replica }) => replica !== rows[0]?.replica);
}

/** Returns the start of a replica's name for a table, which distinguishes it from others. */
export function replicaText(replica: string): string {
  return safeText(replica.slice(0, 6));
}
