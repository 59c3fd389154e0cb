import { budgetMs, grpcTimeoutHeader } from "../admission/deadline.js";
import { formatGrpcTimeout } from "../base/grpc-timeout.js";

/** Time limits of a caller's attempts. */
export interface CallDeadlineSettings {
  /** Minimum time left for an attempt to begin, in milliseconds. */
  readonly remainingMsMin: number;
  /** Subtracted from the time that the service is told, in milliseconds. */
  readonly marginMs: number;
  /** A header that states the time left, in milliseconds, besides `grpc-timeout`; lower case. */
  readonly header?: string | undefined;
}

/** Maximum time that the header states, in milliseconds: nine digits, which are 11 days. */
const statedMsMax = 999_999_999;

/**
 * Returns when a call must end: after the shortest of its timeouts, from now on. Infinity if there
 * is none. A timeout that is not a number is ignored; one that is not above 0 is over already.
 *
 * @param timeoutsMs such as the call's own, the default, and what is left of the caller's request
 */
export function callEndMs(nowMs: number, timeoutsMs: readonly (number | undefined)[]): number {
  let endMs = Number.POSITIVE_INFINITY;
  for (const ms of timeoutsMs) if (ms !== undefined && nowMs + ms < endMs) endMs = nowMs + ms;
  return endMs;
}

/**
 * Reports whether an attempt may begin with this time left: with less than `remainingMsMin`, it
 * would not be answered in time. Before a wait, pass the time left after it: then the call fails at
 * once instead of later.
 *
 * @param remainingMs Infinity if the call has no deadline
 */
export function mayBegin(
  { remainingMsMin }: Pick<CallDeadlineSettings, "remainingMsMin">,
  remainingMs: number,
): boolean {
  // With no time left it is too late, even if `remainingMsMin` is 0.
  return remainingMs > 0 && remainingMs >= remainingMsMin;
}

/**
 * Returns headers that tell the service the time left, less the margin: `grpc-timeout`, which this
 * library and Headgate read for HTTP, too, and the one of the settings. None if the call has no
 * deadline.
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
