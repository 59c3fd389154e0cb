import { httpStatuses } from "../base/http-status.js";
import { problemJson, problemJsonType } from "../base/problem-json.js";
import { type BodyStyle, type HeaderStyle, type LimitUnit, unitSeconds } from "./limit.js";
import {
  type CurrentLimit,
  type DescriptorVerdict,
  headerSeconds,
  isTighter,
  periodSeconds,
} from "./verdict.js";

/** A response header. Names and values are printable ASCII. */
export interface Header {
  readonly name: string;
  readonly value: string;
}

/** Names of the three headers that report a limit in numbers. */
export interface LimitHeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** A status, and the settings of its rule for responses. */
export interface StyledStatus {
  readonly status: DescriptorVerdict;
  /** The name to use if the limit has none: policy text. */
  readonly label: string;
  readonly headers?: HeaderStyle | undefined;
  readonly body?: BodyStyle | undefined;
}

/** The parts of a response besides its statuses. */
export interface LimitResponse {
  readonly headers: readonly Header[];
  /** Headers that are added to the request to the upstream. */
  readonly requestHeaders: readonly Header[];
  readonly body?: string;
}

/** Source: envoy.extensions.filters.http.ratelimit.v3.RateLimit, DRAFT_VERSION_03. */
const xRateLimitNames: LimitHeaderNames = {
  limit: "x-ratelimit-limit",
  remaining: "x-ratelimit-remaining",
  reset: "x-ratelimit-reset",
};

type LimitedStatus = Required<DescriptorVerdict>;

interface LimitedStyled extends StyledStatus {
  readonly status: LimitedStatus;
}

/** Process settings, which apply unless the rule of the tightest limit overrides them. */
interface LimitResponseOptions {
  readonly isDenied: boolean;
  /** Names of the process's own headers, for rules without a header style. Absent: none. */
  readonly names?: LimitHeaderNames | undefined;
  /** Names of the headers for the upstream, unless a rule wants no headers. Absent: none. */
  readonly requestNames?: LimitHeaderNames | undefined;
  /** Whether refusals have `retry-after` even without any other header. Default false. */
  readonly tellsWait?: boolean;
}

/**
 * Returns the headers that report the tightest limit of a request, in the style of its rule, and
 * the body of a refusal. A refusal has `retry-after` if it has other headers or `tellsWait` is set,
 * unless the rule's style is `none`. `ietf` lists every limit whose rule selects that style.
 */
export function limitResponse(
  statuses: readonly StyledStatus[],
  { isDenied, names, requestNames, tellsWait = false }: LimitResponseOptions,
): LimitResponse {
  const limited = statuses.filter(isLimited);
  const tightest = tightestOf(limited);
  if (tightest === undefined) return { headers: [], requestHeaders: [] };
  const isRefusing = isDenied && tightest.status.isOver;
  const reported = [
    ...ownHeaders(tightest, names),
    ...ietfHeaders(limited.filter((one) => one.headers === "ietf")),
  ];
  const hasWait = isRefusing && (reported.length > 0 || tellsWait) && tightest.headers !== "none";
  const headers = hasWait ? [...reported, retryAfter(tightest)] : reported;
  const requestHeaders =
    requestNames === undefined || tightest.headers === "none"
      ? []
      : namedHeaders(tightest, requestNames);
  if (!isRefusing || tightest.body === undefined) return { headers, requestHeaders };
  return {
    headers: [...headers, { name: "content-type", value: problemJsonType }],
    requestHeaders,
    body: problemBody(tightest),
  };
}

/** At least one second, like Envoy's own header. Source: RFC 9110, section 10.2.3. */
function retryAfter({ status }: LimitedStyled): Header {
  const seconds = Math.max(1, headerSeconds(status.durationUntilResetUs));
  return { name: "retry-after", value: String(seconds) };
}

function isLimited(one: StyledStatus): one is LimitedStyled {
  const { currentLimit, limitRemaining, durationUntilResetUs } = one.status;
  return (
    currentLimit !== undefined && limitRemaining !== undefined && durationUntilResetUs !== undefined
  );
}

function tightestOf(statuses: readonly LimitedStyled[]): LimitedStyled | undefined {
  let tightest: LimitedStyled | undefined;
  for (const one of statuses) {
    if (tightest === undefined || isTighter(one.status, tightest.status)) tightest = one;
  }
  return tightest;
}

function ownHeaders(
  { status, headers }: LimitedStyled,
  processNames: LimitHeaderNames | undefined,
): readonly Header[] {
  if (headers === "none" || headers === "ietf") return [];
  const names = headers === "x-ratelimit" ? xRateLimitNames : processNames;
  return names === undefined ? [] : namedHeaders({ status }, names);
}

function namedHeaders(
  { status }: Pick<LimitedStyled, "status">,
  names: LimitHeaderNames,
): readonly Header[] {
  const { currentLimit, limitRemaining, durationUntilResetUs } = status;
  return [
    { name: names.limit, value: String(currentLimit.hits) },
    { name: names.remaining, value: String(limitRemaining) },
    { name: names.reset, value: String(headerSeconds(durationUntilResetUs)) },
  ];
}

/**
 * Returns what is allowed and what is left of it: two structured lists with one item per limit.
 *
 * Both items state hits per number of seconds, and stay true if they are repeated: `r` hits fit in
 * every `t` seconds, at once or spread out, and `q` hits in every `w`. So neither pair exceeds the
 * rate, and `t` is not the time until a bucket is empty or a window ends. If `r` is 0, `t` is the
 * wait until a hit fits.
 *
 * Example: 100 per minute, 1 of them used: `q=100;w=60` and `r=99;t=60`, even for a fixed window
 * that ends in 20 s. With a burst of 10, the first is `q=10;w=6`.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4; RFC 9651 for strings.
 */
function ietfHeaders(statuses: readonly LimitedStyled[]): readonly Header[] {
  if (statuses.length === 0) return [];
  const policies = statuses.map((one) => {
    const { hits, seconds } = quotaWindow(one.status);
    return `${quoted(nameOf(one))};q=${hits};w=${seconds}`;
  });
  const limits = statuses.map((one) => {
    const { hits, seconds } = remainingWindow(one.status);
    return `${quoted(nameOf(one))};r=${hits};t=${seconds}`;
  });
  return [
    { name: "ratelimit-policy", value: policies.join(", ") },
    { name: "ratelimit", value: limits.join(", ") },
  ];
}

/** The hits that fit in every period of this many seconds. Both are integers. */
interface HitWindow {
  readonly hits: number;
  readonly seconds: number;
}

/** Returns what the limit allows permanently. */
function quotaWindow({ currentLimit }: LimitedStatus): HitWindow {
  const { hits, burst, unit, unitMultiplier, algorithm } = currentLimit;
  if (algorithm?.kind === "fixed_window") return { hits, seconds: longestSeconds(currentLimit) };
  if (burst >= hits) return { hits, seconds: periodSeconds(unit, unitMultiplier) };
  return drainedWindow(currentLimit, burst);
}

/** Returns what the limit allows from now on. */
function remainingWindow(status: LimitedStatus): HitWindow {
  const { currentLimit, limitRemaining, durationUntilResetUs, isOver } = status;
  const { hits, burst, unit, unitMultiplier, algorithm } = currentLimit;
  const resetSeconds = headerSeconds(durationUntilResetUs);
  const periodS = periodSeconds(unit, unitMultiplier);
  if (algorithm?.kind === "fixed_window") {
    // An unused window has no end that could be reported yet.
    const endsInSeconds = resetSeconds || longestSeconds(currentLimit);
    if (limitRemaining === 0) return { hits: 0, seconds: endsInSeconds };
    return countedWindow(currentLimit, limitRemaining, endsInSeconds);
  }
  if (limitRemaining > 0) return drainedWindow(currentLimit, limitRemaining);
  if (isOver || hits === 0) return { hits: 0, seconds: Math.max(1, resetSeconds) };
  // A hit fits as soon as only `burst - 1` hits are left to drain.
  const waitUs = durationUntilResetUs - ((burst - 1) * periodS * 1_000_000) / hits;
  return { hits: 0, seconds: Math.max(1, headerSeconds(waitUs)) };
}

/** Minimum fraction of the rate that a reported pair with whole seconds should amount to. */
const reportedRateRatioMin = 0.9;

/**
 * Returns up to `mostHits` (at least 1), and the whole seconds in which they drain. Because seconds
 * are rounded up, the pair amounts to less than the rate. Fewer hits are reported if that reaches
 * 90 % of the rate, or otherwise whatever comes closest.
 *
 * Example: at 100 per minute, 7 drain in 4.2 s. 7 in 5 s is 84 % of the rate, so it is 6 in 4 s.
 * From 10 hits or 10 s on, rounding costs less than 10 %, so few windows are tried.
 */
function drainedWindow(limit: CurrentLimit, mostHits: number): HitWindow {
  const perSecond = limit.hits / periodSeconds(limit.unit, limit.unitMultiplier);
  let best: HitWindow | undefined;
  for (let seconds = Math.ceil(mostHits / perSecond); seconds > 0; seconds -= 1) {
    const hits = Math.min(mostHits, Math.floor(perSecond * seconds));
    const window = { hits, seconds };
    if (hits >= reportedRateRatioMin * perSecond * seconds) return window;
    if (best === undefined || hits * best.seconds > best.hits * seconds) best = window;
  }
  return best ?? { hits: mostHits, seconds: 1 };
}

/** Maximum number of parts of a window to try. Shorter parts in whole seconds gain little. */
const windowPartsMax = 60;

/**
 * Returns hits per seconds that always fit into each window, and into the rest of this one: all
 * hits that are left, or a part of them if that is closer to the rate. A caller may follow one
 * response forever from any point of a window, so periods of `t` in a window are rounded up.
 *
 * Example: 100 per minute. With 99 left for 20 s, it is 99 in 60 s: 99 in 20 s is 297 per minute.
 * With 80 left for 48 s, it is 20 in 12 s: 80 in 60 s is only 80 % of the rate.
 */
function countedWindow(limit: CurrentLimit, leftHits: number, endsInSeconds: number): HitWindow {
  const lengthS = longestSeconds(limit);
  const perSecond = Math.min(limit.hits / lengthS, leftHits / endsInSeconds);
  let best: HitWindow = { hits: leftHits, seconds: lengthS };
  for (let parts = 1; parts <= windowPartsMax; parts += 1) {
    const seconds = Math.ceil(lengthS / parts);
    const hits = Math.min(
      Math.floor(leftHits / Math.ceil(endsInSeconds / seconds)),
      Math.floor(limit.hits / Math.ceil(lengthS / seconds)),
    );
    if (hits * best.seconds > best.hits * seconds) best = { hits, seconds };
    if (best.hits >= reportedRateRatioMin * perSecond * best.seconds || seconds === 1) break;
  }
  return best;
}

/** Returns the longest possible window: calendar months have 31 days, and clocks are put back. */
function longestSeconds({ unit, unitMultiplier, algorithm }: CurrentLimit): number {
  const isCalendar = algorithm?.kind === "fixed_window" && algorithm.timeZone !== undefined;
  return isCalendar ? calendarSecondsMax[unit] : periodSeconds(unit, unitMultiplier);
}

const hourSeconds = unitSeconds.hour;

/** Maximum length of each unit, with an hour for clocks that are put back. Hours stay the same. */
const calendarSecondsMax: Readonly<Record<LimitUnit, number>> = {
  ...unitSeconds,
  day: unitSeconds.day + hourSeconds,
  week: unitSeconds.week + hourSeconds,
  month: 31 * unitSeconds.day + hourSeconds,
  year: 366 * unitSeconds.day + hourSeconds,
};

function nameOf({ status, label }: LimitedStyled): string {
  return status.currentLimit.name ?? label;
}

/** Returns a structured field string: printable ASCII, with quotes and backslashes escaped. */
function quoted(text: string): string {
  const printable = text.replaceAll(/[^\x20-\x7e]/g, "?");
  return `"${printable.replaceAll(/["\\]/g, "\\$&")}"`;
}

/** Uses a problem type that needs no page. Source: RFC 9457. */
function problemBody(one: LimitedStyled): string {
  const waitSeconds = headerSeconds(one.status.durationUntilResetUs);
  const seconds = waitSeconds === 1 ? "1 second" : `${waitSeconds} seconds`;
  const detail = `The limit ${JSON.stringify(nameOf(one))} is reached. Try again in ${seconds}.`;
  return problemJson({ status: httpStatuses.tooManyRequests, detail, retrySeconds: waitSeconds });
}
