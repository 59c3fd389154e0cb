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

/**
 * Headers that say the tightest limit of a request, in the way that its rule wants, and the body of
 * a refusal. `ietf` lists every limit whose rule wants that.
 *
 * @param names the process's own headers, for rules that say nothing; undefined for none
 */
export function limitResponse(
  statuses: readonly StyledStatus[],
  {
    isDenied,
    names,
  }: { readonly isDenied: boolean; readonly names?: LimitHeaderNames | undefined },
): LimitResponse {
  const limited = statuses.filter(isLimited);
  const tightest = tightestOf(limited);
  if (tightest === undefined) return { headers: [] };
  const headers = [
    ...ownHeaders(tightest, names),
    ...ietfHeaders(limited.filter((one) => one.headers === "ietf")),
  ];
  if (!isDenied || !tightest.status.isOver || tightest.body === undefined) return { headers };
  return {
    headers: [...headers, { name: "content-type", value: "application/problem+json" }],
    body: problemBody(tightest),
  };
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
  if (names === undefined) return [];
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
 * Source: draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4; RFC 9651 for strings.
 */
function ietfHeaders(statuses: readonly LimitedStyled[]): readonly Header[] {
  if (statuses.length === 0) return [];
  const policies = statuses.map((one) => {
    const { hits, unit, unitMultiplier } = one.status.currentLimit;
    return `${quoted(nameOf(one))};q=${hits};w=${periodSeconds(unit, unitMultiplier)}`;
  });
  const limits = statuses.map((one) => {
    const { limitRemaining, durationUntilResetUs } = one.status;
    return `${quoted(nameOf(one))};r=${limitRemaining};t=${headerSeconds(durationUntilResetUs)}`;
  });
  return [
    { name: "ratelimit-policy", value: policies.join(", ") },
    { name: "ratelimit", value: limits.join(", ") },
  ];
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
