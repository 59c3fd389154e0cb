import type { AttemptOutcome } from "../../core/calls/attempt-outcome.js";
import { AdmissionError } from "../admission-error.js";

/** Source: RFC 9110, section 9.2.2. */
const idempotentMethods: readonly string[] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/** A request with this header runs once if repeated. Source: IETF, "The Idempotency-Key Header". */
export const idempotencyKeyHeader = "idempotency-key";

/** Properties of a request that are known before it is sent. */
interface HttpRequest {
  /** In upper or lower case. */
  readonly method: string;
  /** Undefined if there is no body. */
  readonly body: unknown;
  readonly hasIdempotencyKey: boolean;
  /** Choice of the caller. Undefined if the caller makes none. */
  readonly isIdempotent: boolean | undefined;
}

/** How an HTTP request may be repeated. */
export interface Repetition {
  readonly isIdempotent: boolean;
  /** Adjusts the outcome of an attempt: never retriable if the body can be sent only once. */
  outcome(outcome: AttemptOutcome): AttemptOutcome;
}

/** Returns how a request may be repeated. A request whose body is a stream is sent only once. */
export function repetitionOf(request: HttpRequest): Repetition {
  const { method, body, hasIdempotencyKey } = request;
  if (!canReplay(body)) {
    return { isIdempotent: false, outcome: (outcome) => ({ ...outcome, retriable: "never" }) };
  }
  const isIdempotent =
    request.isIdempotent ?? (hasIdempotencyKey || idempotentMethods.includes(method.toUpperCase()));
  return { isIdempotent, outcome: (outcome) => outcome };
}

/** Reports whether a body can be sent again: it is in memory, and sending does not consume it. */
function canReplay(body: unknown): boolean {
  return (
    body === undefined ||
    typeof body === "string" ||
    ArrayBuffer.isView(body) ||
    body instanceof ArrayBuffer ||
    body instanceof Blob ||
    body instanceof URLSearchParams ||
    body instanceof FormData
  );
}

/** Error codes of Node and undici for requests of which nothing was sent. */
const unsentCodes: ReadonlySet<string> = new Set([
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Error codes of timeouts. */
const timeoutCodes: ReadonlySet<string> = new Set([
  "ETIMEDOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
]);

/** Error codes of requests that are invalid by themselves, or whose client was closed. */
const callerCodes: ReadonlySet<string> = new Set([
  "ERR_INVALID_URL",
  "UND_ERR_ABORTED",
  "UND_ERR_CLOSED",
  "UND_ERR_DESTROYED",
  "UND_ERR_INVALID_ARG",
  "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH",
]);

/**
 * Returns what a request without a response says about the service.
 *
 * | error | kind | retriable |
 * |---|---|---|
 * | a name that is not found, a connection that is refused | failed | always: nothing was sent |
 * | no connection in time | overloaded | always |
 * | no response in time | overloaded | if idempotent |
 * | an abort, a refusal on this side, a request that is invalid by itself | cancelled | never |
 * | all others: a connection that was lost | failed | if idempotent |
 */
export function httpErrorOutcome(error: unknown): AttemptOutcome {
  if (error instanceof AdmissionError) return { kind: "cancelled", retriable: "never" };
  const { name, code } = errorWords(error);
  if (name === "AbortError" || callerCodes.has(code)) {
    return { kind: "cancelled", retriable: "never" };
  }
  const isTimeout = name === "TimeoutError" || timeoutCodes.has(code);
  const retriable = unsentCodes.has(code) ? "always" : "ifIdempotent";
  return { kind: isTimeout ? "overloaded" : "failed", retriable };
}

/** Returns the name, and the code of the error or its cause, where `fetch` puts undici's error. */
function errorWords(error: unknown): { readonly name: string; readonly code: string } {
  if (!(error instanceof Error)) return { name: "", code: "" };
  return { name: error.name, code: codeOf(error) ?? codeOf(error.cause) ?? "" };
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
