import { httpStatuses } from "./http-status.js";

/** The content type of refusals over HTTP. Source: RFC 9457, section 3. */
export const problemJsonType = "application/problem+json";

/** Names of the statuses of refusals. Source: IANA's registry of HTTP status codes. */
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

/** The parts of a refusal for the caller. */
interface RefusalProblem {
  /** HTTP status. */
  readonly status: number;
  /** A sentence for people. */
  readonly detail: string;
  /** A stable name for programs, if there is one. */
  readonly cause?: string;
  /** The exhausted budget, if there is one and it may be disclosed. */
  readonly budget?: string;
  /** Time until a retry makes sense, in whole seconds. */
  readonly retrySeconds: number;
}

/**
 * Returns the body of a refusal over HTTP: one line of JSON.
 *
 * Source: RFC 9457. A type of its own would need a page of its own, so it is `about:blank`.
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
