import { formatGrpcTimeout, parseGrpcTimeout } from "../base/grpc-timeout.js";
import type { HeaderField } from "../base/header-field.js";

/** Settings for the remaining time of requests. */
export interface DeadlineSettings {
  /** A request with less time left is refused at once. */
  readonly minRemainingMs: number;
  /** Subtracted from the time that is passed on to the upstream. */
  readonly marginMs: number;
  /** A request header with the time left, in milliseconds, besides Envoy's and gRPC's own. */
  readonly header: string | undefined;
}

/** The header in which a gRPC caller states its timeout. Source: gRPC over HTTP2, "Timeout". */
export const grpcTimeoutHeader = "grpc-timeout";

/** The header in which Envoy states how long it waits. Source: Envoy's router filter. */
export const expectedTimeoutHeader = "x-envoy-expected-rq-timeout-ms";

/** Remaining time of a request on arrival. */
export interface Deadline {
  /** Minimum of the times that headers state, in milliseconds from 0. */
  readonly remainingMs: number;
  /** Headers that state a time, in lower case. */
  readonly statedIn: readonly string[];
}

/** Whole milliseconds of at most nine digits (11 days). */
const wholeMs = /^[0-9]{1,9}$/;

/**
 * Returns the minimum of the times that a request's headers state; undefined if none states a time.
 * Invalid values are ignored, and so are repeated headers: it is not known which value applies.
 *
 * @param headers by lower-case name
 */
export function requestDeadline(
  headers: Pick<ReadonlyMap<string, string>, "get">,
  { header }: Pick<DeadlineSettings, "header">,
): Deadline | undefined {
  const statedIn: string[] = [];
  let remainingMs = Number.POSITIVE_INFINITY;
  const take = (name: string, ms: number | undefined): void => {
    if (ms === undefined || statedIn.includes(name)) return;
    statedIn.push(name);
    remainingMs = Math.min(remainingMs, ms);
  };
  take(grpcTimeoutHeader, parseGrpcTimeout(headers.get(grpcTimeoutHeader) ?? ""));
  const expectedMs = parseMs(headers.get(expectedTimeoutHeader));
  // For Envoy, 0 means "no timeout", and Envoy does not send it.
  take(expectedTimeoutHeader, expectedMs === 0 ? undefined : expectedMs);
  if (header !== undefined) take(header, parseMs(headers.get(header)));
  return statedIn.length === 0 ? undefined : { remainingMs, statedIn };
}

/** Reports whether too little time is left to begin: less than `minRemainingMs`. */
export function isTooLittle(
  { minRemainingMs }: Pick<DeadlineSettings, "minRemainingMs">,
  { remainingMs }: Deadline,
): boolean {
  return remainingMs < minRemainingMs;
}

interface BudgetQuestion {
  readonly deadline: Deadline;
  /** How long the request has waited here. */
  readonly waitedMs: number;
  readonly isGrpc: boolean;
}

/**
 * Returns the time to pass on to the called service: the remaining time, less `marginMs` for the
 * way back of the response, in whole milliseconds rounded down, at least 1.
 */
export function budgetMs(
  { marginMs }: Pick<DeadlineSettings, "marginMs">,
  remainingMs: number,
): number {
  return Math.max(1, Math.floor(remainingMs - marginMs));
}

/**
 * Returns headers with the time to pass on to the upstream (`budgetMs`) after the wait here. They
 * replace each header that stated a time, so that the upstream cannot read an older one. A gRPC
 * request gets `grpc-timeout` in any case.
 *
 * Example: 1 s left at arrival, 200 ms waited, margin 10 ms: `grpc-timeout: 790m`.
 */
export function budgetHeaders(
  settings: Pick<DeadlineSettings, "marginMs">,
  { deadline, waitedMs, isGrpc }: BudgetQuestion,
): readonly HeaderField[] {
  const leftMs = budgetMs(settings, deadline.remainingMs - waitedMs);
  const fields = deadline.statedIn
    .filter((name) => name !== grpcTimeoutHeader)
    .map((name) => ({ name, value: String(leftMs) }));
  if (!isGrpc && !deadline.statedIn.includes(grpcTimeoutHeader)) return fields;
  return [{ name: grpcTimeoutHeader, value: formatGrpcTimeout(leftMs) }, ...fields];
}

function parseMs(text: string | undefined): number | undefined {
  return text !== undefined && wholeMs.test(text) ? Number(text) : undefined;
}
