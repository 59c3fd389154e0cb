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

/** What three headers are called that say a limit in numbers. */
export interface LimitHeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** A status, and what its rule says of responses. */
export interface StyledStatus {
  readonly status: DescriptorVerdict;
  /** What the limit is called where it has no name: policy text. */
  readonly label: string;
  readonly headers?: HeaderStyle | undefined;
  readonly body?: BodyStyle | undefined;
}

/** What a response carries beside its statuses. */
export interface LimitResponse {
  readonly headers: readonly Header[];
  /** What the request carries that goes to the upstream. */
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

/** What the process adds, where the rule of the tightest limit does not say otherwise. */
interface LimitResponseOptions {
  readonly isDenied: boolean;
  /** The process's own headers, for rules that say nothing; absent: none. */
  readonly names?: LimitHeaderNames | undefined;
  /** What the upstream is told, unless a rule wants no headers; absent: nothing. */
  readonly requestNames?: LimitHeaderNames | undefined;
  /** Whether refusals say when to come back though nothing else is told. Default false. */
  readonly tellsWait?: boolean;
}

/**
 * Headers that say the tightest limit of a request, in the way that its rule wants, with
 * `retry-after` where it refuses and has any, or is to say the wait in any case; and the body of a
 * refusal. `ietf` lists every limit whose rule wants that.
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

/** Source: RFC 9110, section 10.2.3; at least a second, as Envoy's own. */
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
 * What is allowed, and what is left of it: a structured list each, one item a limit.
 *
 * Both say hits for a number of seconds, and each is true again and again: `r` hits in every `t`
 * seconds fit, at once or spread out, and `q` hits in every `w`. So neither pair is more than the
 * rate, and `t` is not when a bucket is unused, or a window ends. Where `r` is 0, `t` is the wait
 * until a hit fits.
 *
 * Example: 100 a minute, of which 1 is used: `q=100;w=60`, and `r=99;t=60`, also where they are
 * counted in windows and this one ends in 20 s. With a burst of 10 it is `q=10;w=6`.
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

/** Hits that fit in every so many seconds; both whole numbers. */
interface HitWindow {
  readonly hits: number;
  readonly seconds: number;
}

/** What the limit gives for good. */
function quotaWindow({ currentLimit }: LimitedStatus): HitWindow {
  const { hits, burst, unit, unitMultiplier, algorithm } = currentLimit;
  if (algorithm?.kind === "fixed_window") return { hits, seconds: longestSeconds(currentLimit) };
  if (burst >= hits) return { hits, seconds: periodSeconds(unit, unitMultiplier) };
  return drainedWindow(currentLimit, burst);
}

/** What the limit gives from now on. */
function remainingWindow(status: LimitedStatus): HitWindow {
  const { currentLimit, limitRemaining, durationUntilResetUs, isOver } = status;
  const { hits, burst, unit, unitMultiplier, algorithm } = currentLimit;
  const resetSeconds = headerSeconds(durationUntilResetUs);
  const periodS = periodSeconds(unit, unitMultiplier);
  if (algorithm?.kind === "fixed_window") {
    // An unused window has no end yet that could be told.
    const endsInSeconds = resetSeconds || longestSeconds(currentLimit);
    if (limitRemaining === 0) return { hits: 0, seconds: endsInSeconds };
    return countedWindow(currentLimit, limitRemaining, endsInSeconds);
  }
  if (limitRemaining > 0) return drainedWindow(currentLimit, limitRemaining);
  if (isOver || hits === 0) return { hits: 0, seconds: Math.max(1, resetSeconds) };
  // A hit fits where all but one of the burst still have to drain.
  const waitUs = durationUntilResetUs - ((burst - 1) * periodS * 1_000_000) / hits;
  return { hits: 0, seconds: Math.max(1, headerSeconds(waitUs)) };
}

/** The part of the rate that whole seconds should say at least. */
const reportedRateRatioMin = 0.9;

/**
 * Up to `mostHits`, 1 or more, and the whole seconds in which so many drain. Rounded up, seconds
 * say less than the rate: fewer hits are told where they say 90 % of it, or as much as any do.
 *
 * Example: of 100 a minute 7 drain in 4.2 s. 7 in 5 s would be 84 % of the rate: it is 6 in 4 s.
 *
 * At 10 hits, or 10 s, rounding takes less than 10 %, so that few windows are looked at.
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

/** Parts of a window that are looked at: whole seconds in all that are shorter say little more. */
const windowPartsMax = 60;

/**
 * Hits in every so many seconds that fit for good into windows, and into what is left of this one:
 * as much as there is, or parts of it where they say more of the rate. Whoever believes one answer
 * for ever begins at any time of a window, so `t` seconds come as often as they fit in, rounded up.
 *
 * Example: 100 a minute. With 99 left for 20 s it is 99 in 60 s: 99 in 20 s would be 297 a minute.
 * With 80 left for 48 s it is 20 in 12 s: 80 in 60 s say 80 % of the rate.
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

/** What no window is longer than: a calendar's months have 31 days, and clocks are put back. */
function longestSeconds({ unit, unitMultiplier, algorithm }: CurrentLimit): number {
  const isCalendar = algorithm?.kind === "fixed_window" && algorithm.timeZone !== undefined;
  return isCalendar ? calendarSecondsMax[unit] : periodSeconds(unit, unitMultiplier);
}

const hourSeconds = unitSeconds.hour;

/** The longest of each unit, with an hour for clocks that are put back; hours are hours. */
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

/** A structured field's string: printable ASCII, with quotes and backslashes escaped. */
function quoted(text: string): string {
  const printable = text.replaceAll(/[^\x20-\x7e]/g, "?");
  return `"${printable.replaceAll(/["\\]/g, "\\$&")}"`;
}

/** Source: RFC 9457; the type is one that needs no page. */
function problemBody(one: LimitedStyled): string {
  const waitSeconds = headerSeconds(one.status.durationUntilResetUs);
  const seconds = waitSeconds === 1 ? "1 second" : `${waitSeconds} seconds`;
  const detail = `The limit ${JSON.stringify(nameOf(one))} is reached. Try again in ${seconds}.`;
  return problemJson({ status: httpStatuses.tooManyRequests, detail, retrySeconds: waitSeconds });
}
