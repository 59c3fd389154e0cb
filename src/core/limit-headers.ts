import type { BodyStyle, HeaderStyle } from "./limit.js";
import { type DescriptorVerdict, headerSeconds, isTighter, periodSeconds } from "./verdict.js";

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
export interface LimitResponseOptions {
  readonly isDenied: boolean;
  /** The process's own headers, for rules that say nothing; absent: none. */
  readonly names?: LimitHeaderNames | undefined;
  /** What the upstream is told, unless a rule wants no headers; absent: nothing. */
  readonly requestNames?: LimitHeaderNames | undefined;
}

/**
 * Headers that say the tightest limit of a request, in the way that its rule wants, with
 * `retry-after` where it has any and refuses; and the body of a refusal. `ietf` lists every limit
 * whose rule wants that.
 */
export function limitResponse(
  statuses: readonly StyledStatus[],
  { isDenied, names, requestNames }: LimitResponseOptions,
): LimitResponse {
  const limited = statuses.filter(isLimited);
  const tightest = tightestOf(limited);
  if (tightest === undefined) return { headers: [], requestHeaders: [] };
  const isRefusing = isDenied && tightest.status.isOver;
  const told = [
    ...ownHeaders(tightest, names),
    ...ietfHeaders(limited.filter((one) => one.headers === "ietf")),
  ];
  const hasWait = isRefusing && told.length > 0 && tightest.headers !== "none";
  const headers = hasWait ? [...told, retryAfter(tightest)] : told;
  const requestHeaders =
    requestNames === undefined || tightest.headers === "none"
      ? []
      : namedHeaders(tightest, requestNames);
  if (!isRefusing || tightest.body === undefined) return { headers, requestHeaders };
  return {
    headers: [...headers, { name: "content-type", value: "application/problem+json" }],
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
 * They are read as a client reads them that does all they allow: `r` hits within the next `t`
 * seconds, whenever it likes, and `q` hits in each `w` seconds after. So `t` is not the time until
 * a bucket is unused, but one after which `q` hits fit whatever was done with the `r`. A bucket of
 * b hits that drain at a rate holds at most b - r + r when they are used; after `w` = q / rate, `q`
 * of them have drained. A debt has to drain besides.
 *
 * Example: 100 a minute, of which 1 is used: `q=100;w=60`, and `r=99;t=60`. With a burst of 10 it
 * is `q=10;w=6`.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4; RFC 9651 for strings.
 */
function ietfHeaders(statuses: readonly LimitedStyled[]): readonly Header[] {
  if (statuses.length === 0) return [];
  const policies = statuses.map((one) => {
    const { quota, windowSeconds } = ietfPolicy(one.status);
    return `${quoted(nameOf(one))};q=${quota};w=${windowSeconds}`;
  });
  const limits = statuses.map((one) => {
    return `${quoted(nameOf(one))};r=${one.status.limitRemaining};t=${effectiveSeconds(one)}`;
  });
  return [
    { name: "ratelimit-policy", value: policies.join(", ") },
    { name: "ratelimit", value: limits.join(", ") },
  ];
}

/** Hits that are allowed in each window. What drains has one of what fits at once, rounded up. */
function ietfPolicy({ currentLimit }: LimitedStatus): {
  readonly quota: number;
  readonly windowSeconds: number;
} {
  const { hits, burst, unit, unitMultiplier, algorithm } = currentLimit;
  const seconds = periodSeconds(unit, unitMultiplier);
  if (algorithm?.kind === "fixed_window" || burst >= hits) {
    return { quota: hits, windowSeconds: seconds };
  }
  return { quota: burst, windowSeconds: Math.ceil((burst * seconds) / hits) };
}

/** In how many seconds the whole quota is there again, whatever is done with what remains now. */
function effectiveSeconds({ status }: LimitedStyled): number {
  const { currentLimit, durationUntilResetUs, isOver } = status;
  const { windowSeconds } = ietfPolicy(status);
  const seconds = headerSeconds(durationUntilResetUs);
  // An unused window has no end yet that could be told.
  if (currentLimit.algorithm?.kind === "fixed_window") return seconds || windowSeconds;
  return isOver ? windowSeconds + seconds : windowSeconds;
}

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
  return JSON.stringify({
    type: "about:blank",
    title: "Too Many Requests",
    status: 429,
    detail: `The limit ${JSON.stringify(nameOf(one))} is reached. Try again in ${seconds}.`,
    "retry-after": waitSeconds,
  });
}
