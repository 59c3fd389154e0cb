import { budgetMs, grpcTimeoutHeader } from "../admission/deadline.js";
import { formatGrpcTimeout } from "../base/grpc-timeout.js";

/** Times of a caller's attempts. */
export interface CallDeadlineSettings {
  /** An attempt is not begun with less left, in milliseconds. */
  readonly remainingMsMin: number;
  /** Kept back of what the service is told, in milliseconds. */
  readonly marginMs: number;
  /** A header that states the time left, in milliseconds, beside `grpc-timeout`; lower case. */
  readonly header?: string | undefined;
}

/** The longest time that the header states, in milliseconds: nine digits, which are 11 days. */
const statedMsMax = 999_999_999;

/**
 * When a call ends: after the least of the times that bound it, from now on. Infinity where none
 * does. What is no number bounds nothing; what is not above 0 is over already.
 *
 * @param timeoutsMs such as the call's own, the default, and what is left of the caller's request
 */
export function callEndMs(nowMs: number, timeoutsMs: readonly (number | undefined)[]): number {
  let endMs = Number.POSITIVE_INFINITY;
  for (const ms of timeoutsMs) if (ms !== undefined && nowMs + ms < endMs) endMs = nowMs + ms;
  return endMs;
}

/**
 * Whether an attempt may begin with that much left: it would not be answered in time with less than
 * `remainingMsMin`. Before a wait, ask with what is left after it: then the call fails at once
 * instead of later.
 *
 * @param remainingMs Infinity where the call has no end
 */
export function mayBegin(
  { remainingMsMin }: Pick<CallDeadlineSettings, "remainingMsMin">,
  remainingMs: number,
): boolean {
  // The last moment is too late even where no time is asked for.
  return remainingMs > 0 && remainingMs >= remainingMsMin;
}

/**
 * Headers that tell the service how much time is left, less the margin: `grpc-timeout`, which this
 * library and Headgate read for HTTP, too, and the one of the settings. None where the call has no
 * end.
 *
 * Example: 800.7 ms left, margin 10 ms, header `x-timeout-ms`: `grpc-timeout: 790m` and
 * `x-timeout-ms: 790`.
 *
 * @param remainingMs above 0
 */
export function deadlineHeaders(
  settings: CallDeadlineSettings,
  remainingMs: number,
): Readonly<Record<string, string>> {
  if (!Number.isFinite(remainingMs)) return {};
  const leftMs = budgetMs(settings, remainingMs);
  const headers: Record<string, string> = { [grpcTimeoutHeader]: formatGrpcTimeout(leftMs) };
  const { header } = settings;
  if (header !== undefined) headers[header] = String(Math.min(leftMs, statedMsMax));
  return headers;
}
