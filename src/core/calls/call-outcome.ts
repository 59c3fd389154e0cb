import { grpcStatuses, othersGrpcStatuses } from "../base/grpc-status.js";
import { httpStatuses } from "../base/http-status.js";
import { decodeRetryDelayMs } from "../base/rpc-status.js";
import type { AttemptOutcome, OutcomeKind, Retriability } from "./attempt-outcome.js";
import { hintMsMax, parsePushback, parseRetryAfter } from "./retry-hint.js";

/** Returns a response header or trailer by its lower-case name; undefined if it is absent. */
export type HeaderLookup = (name: string) => string | undefined;

/** A response to an HTTP request. */
interface HttpAnswer {
  readonly status: number;
  readonly header: HeaderLookup;
}

/** The end of a gRPC call. */
interface GrpcAnswer {
  /** The status, 0 to 16. */
  readonly code: number;
  /** Looks up headers and trailers. */
  readonly header: HeaderLookup;
  /** The bytes of `grpc-status-details-bin`. */
  readonly statusDetails?: Uint8Array | undefined;
}

const retryAfterHeader = "retry-after";

/** Source: gRFC A6. */
const pushbackHeader = "grpc-retry-pushback-ms";

/** Marks of responses by Envoy itself, before the service. Source: Envoy, "Router". */
const envoyMarks = ["x-envoy-overloaded", "x-envoy-ratelimited"] as const;

/**
 * Returns what a response to an HTTP request says about the service.
 *
 * | status | kind | retriable |
 * |---|---|---|
 * | 429 | overloaded, law `quota` | always |
 * | 503 with `retry-after` or Envoy's mark of a refusal | overloaded | always |
 * | other 503 | overloaded | if idempotent: Envoy also sends it for a lost connection |
 * | 408, 504 | overloaded | if idempotent |
 * | 501 | failed | never |
 * | all other 5xx | failed | if idempotent |
 * | all below 500 | served | never |
 *
 * Envoy's marks count with 429 and 503 only: it also adds `x-envoy-ratelimited` to responses that
 * it forwards while a limit is not enforced. `retry-after` is the wait that the service asks for.
 *
 * @param epochMs the wall time now, in milliseconds since 1970, for dates
 *
 * Source: RFC 9110, section 15; RFC 6585, section 4.
 */
export function httpOutcome({ status, header }: HttpAnswer, epochMs: number): AttemptOutcome {
  if (status < 400) return served;
  const kind = httpKind(status);
  if (kind === "served") return served;
  const retryAfterMs = parseRetryAfter(header(retryAfterHeader) ?? "", epochMs);
  const isQuota = status === httpStatuses.tooManyRequests;
  const isRefused =
    isQuota || (status === httpStatuses.serviceUnavailable && isRefusal(header, retryAfterMs));
  const isUseless = status === httpStatuses.notImplemented;
  const retriable = isUseless ? "never" : isRefused ? "always" : "ifIdempotent";
  return outcome(kind, { retriable, isQuota, retryAfterMs });
}

/**
 * Returns what the end of a gRPC call says about the service.
 *
 * | status | kind | retriable |
 * |---|---|---|
 * | RESOURCE_EXHAUSTED | overloaded, law `quota` | always if marked, otherwise if idempotent |
 * | UNAVAILABLE | overloaded | the same |
 * | DEADLINE_EXCEEDED | overloaded | if idempotent |
 * | INTERNAL, UNKNOWN, DATA_LOSS | failed | if idempotent, but DATA_LOSS never |
 * | ABORTED | served | if idempotent |
 * | CANCELLED | cancelled | never |
 * | all others, OK included | served | never |
 *
 * A refusal is marked by a pushback, a `RetryInfo`, `retry-after` or one of Envoy's headers.
 * Without a mark, UNAVAILABLE may be a lost connection, and RESOURCE_EXHAUSTED a response that was
 * too large, after the service has done its work. A pushback takes precedence over the other waits,
 * of which the longest counts. A pushback that is negative, or not a number, forbids any retry.
 *
 * @param epochMs as for `httpOutcome`
 *
 * Source: gRPC core, "Status codes and their use in gRPC"; gRFC A6, "Pushback".
 */
export function grpcOutcome(answer: GrpcAnswer, epochMs: number): AttemptOutcome {
  const { code, header } = answer;
  if (code === grpcStatuses.ok) return served;
  const kind = grpcOutcomeKind(code);
  const isAborted = code === othersGrpcStatuses.aborted;
  if (kind === "cancelled") return { kind, retriable: "never" };
  if (kind === "served" && !isAborted) return served;
  const pushbackText = header(pushbackHeader);
  const pushback = pushbackText === undefined ? undefined : parsePushback(pushbackText);
  const isUseless = pushback === "never" || code === othersGrpcStatuses.dataLoss;
  if (isUseless) return { kind, retriable: "never" };
  const retryAfterMs = pushback ?? longestHintMs(answer, epochMs);
  const isQuota = code === grpcStatuses.resourceExhausted;
  const isRefused =
    (isQuota || code === grpcStatuses.unavailable) && isRefusal(header, retryAfterMs);
  return outcome(kind, { retriable: isRefused ? "always" : "ifIdempotent", isQuota, retryAfterMs });
}

/** Returns what a gRPC status says about the service, as in the table of `grpcOutcome`. */
export function grpcOutcomeKind(code: number): OutcomeKind {
  switch (code) {
    case grpcStatuses.deadlineExceeded:
    case grpcStatuses.resourceExhausted:
    case grpcStatuses.unavailable:
      return "overloaded";
    case othersGrpcStatuses.unknown:
    case grpcStatuses.internal:
    case othersGrpcStatuses.dataLoss:
      return "failed";
    case othersGrpcStatuses.cancelled:
      return "cancelled";
    default:
      return "served";
  }
}

const served: AttemptOutcome = { kind: "served", retriable: "never" };

function httpKind(status: number): OutcomeKind {
  switch (status) {
    case httpStatuses.requestTimeout:
    case httpStatuses.tooManyRequests:
    case httpStatuses.serviceUnavailable:
    case httpStatuses.gatewayTimeout:
      return "overloaded";
    default:
      return status < 500 ? "served" : "failed";
  }
}

/** Reports whether a request was refused and not lost: a refused request was not begun. */
function isRefusal(header: HeaderLookup, retryAfterMs: number | undefined): boolean {
  return retryAfterMs !== undefined || envoyMarks.some((name) => header(name) === "true");
}

/** Returns the longest wait that `RetryInfo` and `retry-after` ask for. */
function longestHintMs({ header, statusDetails }: GrpcAnswer, epochMs: number): number | undefined {
  const delayMs = statusDetails && decodeRetryDelayMs(statusDetails);
  const retryAfterMs = parseRetryAfter(header(retryAfterHeader) ?? "", epochMs);
  if (delayMs === undefined) return retryAfterMs;
  return Math.min(hintMsMax, Math.max(delayMs, retryAfterMs ?? 0));
}

function outcome(
  kind: OutcomeKind,
  parts: {
    readonly retriable: Retriability;
    readonly isQuota: boolean;
    readonly retryAfterMs: number | undefined;
  },
): AttemptOutcome {
  const { retriable, isQuota, retryAfterMs } = parts;
  return {
    kind,
    retriable,
    ...(isQuota ? { waitLaw: "quota" } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}
