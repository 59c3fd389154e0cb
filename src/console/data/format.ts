import { type Duration, durationMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { formatTimestamp } from "../../core/base/timestamp.js";
import type { Limit, Override } from "../../gen/headgate/admin/v1/admin_pb.js";

/** Returns a count with separators between thousands: `12,345`. */
export function formatCount(count: number | bigint): string {
  return count.toLocaleString("en", { maximumFractionDigits: 0 });
}

/** Returns a number with a readable number of digits: `1,234`, `12.3`, `0.04`. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** Returns a part as `12.5 %`. */
export function formatPercent(ratio: number): string {
  const percent = 100 * ratio;
  if (percent === 0) return "0 %";
  if (percent < 0.1) return "<0.1 %";
  return `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

/** Returns milliseconds as text: `0.4 ms`, `120 ms`, `1.5 s`. */
export function formatMillis(ms: number): string {
  if (ms >= 1_000) return `${formatNumber(ms / 1_000)} s`;
  return `${formatNumber(ms)} ms`;
}

/** Returns hits per second, or per longer unit for low rates. */
export function formatRate(perSecond: number | undefined): string {
  if (perSecond === undefined) return "no bound";
  if (perSecond === 0 || perSecond >= 0.1) return `${formatNumber(perSecond)}/s`;
  return perSecond * 60 >= 0.1
    ? `${formatNumber(perSecond * 60)}/min`
    : `${formatNumber(perSecond * 3_600)}/h`;
}

const spans = [
  { unit: "d", ms: 86_400_000 },
  { unit: "h", ms: 3_600_000 },
  { unit: "m", ms: 60_000 },
  { unit: "s", ms: 1_000 },
] as const;

/** Returns a duration as on the command line, in at most two units: `1h30m`, `10s`, `180ms`. */
export function formatSpan(ms: number): string {
  if (ms < 1_000) return `${Math.ceil(ms)}ms`;
  if (ms < 10_000) return `${Math.ceil(ms / 100) / 10}s`;
  let left = Math.ceil(ms / 1_000) * 1_000;
  const words: string[] = [];
  for (const { unit, ms: size } of spans) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0 && words.length < 2) words.push(`${count}${unit}`);
  }
  return words.join("");
}

/** Returns a message's duration as text; a question mark if there is none. */
export function formatProtoDuration(duration: Duration | undefined): string {
  return duration === undefined ? "?" : formatSpan(durationMs(duration));
}

/** Returns a message's time in milliseconds; undefined if there is none. */
export function millisOf(time: Timestamp | undefined): number | undefined {
  return time === undefined ? undefined : timestampMs(time);
}

/** Returns a time in UTC, to the second: `2026-11-27 12:00:03Z`; empty if there is none. */
export function formatTime(ms: number | undefined): string {
  if (ms === undefined) return "";
  return `${isoOf(ms).slice(0, 19).replace("T", " ")}Z`;
}

/** Returns only the time of day, in UTC: `12:00:03`. */
export function formatClock(ms: number): string {
  return isoOf(ms).slice(11, 19);
}

/** Returns a time in RFC 3339, in UTC. */
function isoOf(ms: number): string {
  return formatTimestamp(ms * 1_000);
}

/** Returns a limit in one line: `5 per 10s, burst 20, global: 1/2 here, shadow`. */
export function formatLimit(limit: Limit): string {
  const { hits, period, burst, role, algorithm, delayMax, regionCount } = limit;
  const words = [`${formatCount(hits)} per ${formatProtoDuration(period)}`];
  if (burst !== hits && algorithm !== "fixed_window") words.push(`burst ${formatCount(burst)}`);
  if (algorithm === "fixed_window") words.push("fixed windows");
  if (delayMax !== undefined) words.push(`delay ${formatProtoDuration(delayMax)}`);
  if (regionCount > 0) words.push(`global: 1/${regionCount} here`);
  if (role !== "" && role !== "enforce") words.push(role);
  return words.join(", ");
}

/** Returns the effect of an override: `times 2`, `200 hits, burst 20`, `frozen`. */
export function formatEffect({ effect }: Pick<Override, "effect">): string {
  switch (effect.case) {
    case "amount": {
      const { hits, burst } = effect.value;
      const other = burst === 0n || burst === hits ? "" : `, burst ${formatCount(burst)}`;
      return `${formatCount(hits)} hits${other}`;
    }
    case "multiplier":
      return `times ${formatNumber(effect.value)}`;
    case "isFrozen":
      return "frozen";
    case undefined:
      return "nothing";
  }
}

/** Returns a count with its noun: `1 rule`, `3 rules`. */
export function formatMany(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}
