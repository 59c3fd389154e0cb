import { httpStatuses } from "./http-status.js";

/** What refusals over HTTP say of their body. Source: RFC 9457, section 3. */
export const problemJsonType = "application/problem+json";

/** Names of statuses that refusals may have. Source: IANA's registry of HTTP status codes. */
const statusNames: ReadonlyMap<number, string> = new Map([
  [httpStatuses.badRequest, "Bad Request"],
  [httpStatuses.forbidden, "Forbidden"],
  [httpStatuses.requestTimeout, "Request Timeout"],
  [httpStatuses.conflict, "Conflict"],
  [httpStatuses.tooEarly, "Too Early"],
  [httpStatuses.tooManyRequests, "Too Many Requests"],
  [httpStatuses.internalServerError, "Internal Server Error"],
  [httpStatuses.badGateway, "Bad Gateway"],
  [httpStatuses.serviceUnavailable, "Service Unavailable"],
  [httpStatuses.gatewayTimeout, "Gateway Timeout"],
]);

/** What a caller is told of a refusal. */
interface RefusalProblem {
  /** HTTP status. */
  readonly status: number;
  /** A sentence for people. */
  readonly detail: string;
  /** A stable name for programs, where there is one. */
  readonly cause?: string;
  /** The budget that has no room, where there is one and it may be told. */
  readonly budget?: string;
  /** When to try again, in whole seconds. */
  readonly retrySeconds: number;
}

/**
 * The body of every refusal over HTTP: one line of JSON.
 *
 * Source: RFC 9457; a type of its own needs a page of its own, so it is `about:blank`.
 */
export function problemJson(problem: RefusalProblem): string {
  const { status, detail, cause, budget, retrySeconds } = problem;
  const title = statusNames.get(status);
  return JSON.stringify({
    type: "about:blank",
    ...(title === undefined ? {} : { title }),
    status,
    detail,
    ...(cause === undefined ? {} : { cause }),
    ...(budget === undefined ? {} : { budget }),
    "retry-after": retrySeconds,
  });
}
