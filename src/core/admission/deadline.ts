import { formatGrpcTimeout, parseGrpcTimeout } from "../base/grpc-timeout.js";
import type { HeaderField } from "../base/header-field.js";

/** When a request's remaining time is too short. */
export interface DeadlineSettings {
  /** Less than this left: refused at once. */
  readonly minRemainingMs: number;
  /** Kept back of the budget that goes on to the upstream. */
  readonly marginMs: number;
  /** A request header with the time left, in milliseconds, beside Envoy's and gRPC's own. */
  readonly header: string | undefined;
}

/** How a gRPC caller states its time. Source: gRPC over HTTP2, "Timeout". */
export const grpcTimeoutHeader = "grpc-timeout";

/** How Envoy states the time that it waits. Source: Envoy's router filter. */
export const expectedTimeoutHeader = "x-envoy-expected-rq-timeout-ms";

/** What is left of a request's time when it comes. */
export interface Deadline {
  /** The least that any header states, in milliseconds from 0. */
  readonly remainingMs: number;
  /** Headers that state a time, in lower case. */
  readonly statedIn: readonly string[];
}

/** Whole milliseconds of at most nine digits (11 days). */
const wholeMs = /^[0-9]{1,9}$/;

/**
 * The time that a request's headers leave, the least of what they state; undefined where none does.
 * What is no time states nothing; several of one header neither, since which holds is not known.
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
  // Envoy has 0 for "no timeout", and does not send it.
  take(expectedTimeoutHeader, expectedMs === 0 ? undefined : expectedMs);
  if (header !== undefined) take(header, parseMs(headers.get(header)));
  return statedIn.length === 0 ? undefined : { remainingMs, statedIn };
}

/** Whether too little is left to begin at all: less than `minRemainingMs`. */
export function isTooLittle(
  { minRemainingMs }: Pick<DeadlineSettings, "minRemainingMs">,
  { remainingMs }: Deadline,
): boolean {
  return remainingMs < minRemainingMs;
}

interface BudgetQuestion {
  readonly deadline: Deadline;
  /** How long the request has been here. */
  readonly waitedMs: number;
  readonly isGrpc: boolean;
}

/**
 * The time that goes on to whom is called: what is left, less `marginMs` for the answer's way back;
 * whole milliseconds rounded down, at least 1.
 */
export function budgetMs(
  { marginMs }: Pick<DeadlineSettings, "marginMs">,
  remainingMs: number,
): number {
  return Math.max(1, Math.floor(remainingMs - marginMs));
}

/**
 * The time that goes on to the upstream, as `budgetMs` says, after the wait here. It replaces each
 * header that stated a time, so that the upstream cannot read an older one, and a gRPC request has
 * `grpc-timeout` in any case.
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
