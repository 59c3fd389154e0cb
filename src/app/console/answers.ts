import { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { JsonObject } from "../../core/base/json.js";

/** A complete HTTP response of the console. */
export interface ConsoleAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Uint8Array | string;
}

/** No scripts, styles or frames of other origins. Source: Content Security Policy Level 3. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

const commonHeaders = {
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** Source: RFC 6797; a year. */
const strictTransport = { "strict-transport-security": "max-age=31536000" };

/** The headers of every response of the console. */
export function consoleHeaders(isTls: boolean): Readonly<Record<string, string>> {
  return isTls ? { ...commonHeaders, ...strictTransport } : commonHeaders;
}

/** The maximum time for a client to read a response, in milliseconds. */
const answerMsMax = 60_000;

/** Sends a response, and closes the stream of a client that does not read it in time. */
export function sendAnswer(
  {
    request,
    response,
  }: {
    readonly request: { readonly method?: string | undefined };
    readonly response: ServerResponse | Http2ServerResponse;
  },
  { status, headers, body }: ConsoleAnswer,
  clock: Pick<Clock, "schedule">,
): void {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const isSent = request.method !== "HEAD" && status !== httpStatuses.notModified;
  const all: Record<string, string | string[] | number> = {};
  if (status !== httpStatuses.notModified) all["content-length"] = bytes.length;
  for (const [name, value] of Object.entries(headers)) {
    all[name] = typeof value === "string" ? value : [...value];
  }
  const cancel = clock.schedule(answerMsMax, () => {
    if (response instanceof ServerResponse) response.destroy();
    else response.stream.destroy();
  });
  response.once("close", cancel);
  response.writeHead(status, all);
  response.end(isSent ? bytes : "");
}

/** A JSON response that must not be cached. */
export function json(
  status: number,
  value: JsonObject,
  headers: ConsoleAnswer["headers"] = {},
): ConsoleAnswer {
  const type = { "content-type": "application/json", "cache-control": "no-store" };
  return { status, headers: { ...type, ...headers }, body: JSON.stringify(value) };
}

/** A sentence for people, if there is no page (503). */
export function sentence(body: string): ConsoleAnswer {
  const headers = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" };
  return { status: httpStatuses.serviceUnavailable, headers, body };
}

/** A response without details: the status is enough. */
export function problem(status: number): ConsoleAnswer {
  return json(status, {});
}

/** A redirect of the browser (303). */
export function redirect(location: string, cookies: readonly string[] = []): ConsoleAnswer {
  const headers = { location, "cache-control": "no-store", "set-cookie": cookies };
  return { status: httpStatuses.seeOther, headers, body: "" };
}
