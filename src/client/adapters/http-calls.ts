import type { AttemptOutcome } from "../../core/calls/attempt-outcome.js";
import { AdmissionError } from "../admission-error.js";

/** Source: RFC 9110, section 9.2.2. */
const idempotentMethods: readonly string[] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/** With it a request that is repeated is done once. Source: IETF, "The Idempotency-Key Header". */
export const idempotencyKeyHeader = "idempotency-key";

/** What is known of a request before it is sent. */
interface HttpRequest {
  /** In any case. */
  readonly method: string;
  /** Undefined: none. */
  readonly body: unknown;
  readonly hasIdempotencyKey: boolean;
  /** What its caller says; undefined: nothing. */
  readonly isIdempotent: boolean | undefined;
}

/** How an HTTP request may be repeated. */
export interface Repetition {
  readonly isIdempotent: boolean;
  /** What an attempt came to, for a body that may have been sent for good. */
  outcome(outcome: AttemptOutcome): AttemptOutcome;
}

/** How a request may be repeated: not at all if its body is a stream, which is sent once. */
export function repetitionOf(request: HttpRequest): Repetition {
  const { method, body, hasIdempotencyKey } = request;
  if (!canReplay(body)) {
    return { isIdempotent: false, outcome: (outcome) => ({ ...outcome, retriable: "never" }) };
  }
  const isIdempotent =
    request.isIdempotent ?? (hasIdempotencyKey || idempotentMethods.includes(method.toUpperCase()));
  return { isIdempotent, outcome: (outcome) => outcome };
}

/** Whether a body can be sent again: its bytes are in memory, and sending takes nothing away. */
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

/** Codes of Node and undici for a request of which nothing was sent. */
const unsentCodes: ReadonlySet<string> = new Set([
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Codes for a time that was over. */
const timeoutCodes: ReadonlySet<string> = new Set([
  "ETIMEDOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
]);

/** Codes for a request that is wrong by itself, or whose client was closed. */
const callerCodes: ReadonlySet<string> = new Set([
  "ERR_INVALID_URL",
  "UND_ERR_ABORTED",
  "UND_ERR_CLOSED",
  "UND_ERR_DESTROYED",
  "UND_ERR_INVALID_ARG",
  "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH",
]);

/**
 * What a request without a response says of the service.
 *
 * | error | kind | retriable |
 * |---|---|---|
 * | a name that is not found, a connection that is refused | failed | always: nothing was sent |
 * | no connection in time | overloaded | always |
 * | no response in time | overloaded | if idempotent |
 * | an abort, a refusal on this side, a request that is wrong by itself | cancelled | never |
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

/** Its name, and its code or that of its cause: `fetch` puts the error of undici there. */
function errorWords(error: unknown): { readonly name: string; readonly code: string } {
  if (!(error instanceof Error)) return { name: "", code: "" };
  return { name: error.name, code: codeOf(error) ?? codeOf(error.cause) ?? "" };
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
