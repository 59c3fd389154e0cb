import { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { JsonObject } from "../../core/base/json.js";

/** A whole answer of the console. */
export interface ConsoleAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Uint8Array | string;
}

/** Source: Content Security Policy Level 3; no script, style or frame of anybody else. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
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

/** Headers that each answer of the console has, whatever it is. */
export function consoleHeaders(isTls: boolean): Readonly<Record<string, string>> {
  return isTls ? { ...commonHeaders, ...strictTransport } : commonHeaders;
}

/** How long an answer may take to be read, in milliseconds. */
const answerMsMax = 60_000;

/** Sends an answer; who does not read it in time is cut off. */
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

/** An answer in JSON, which nobody keeps. */
export function json(
  status: number,
  value: JsonObject,
  headers: ConsoleAnswer["headers"] = {},
): ConsoleAnswer {
  const type = { "content-type": "application/json", "cache-control": "no-store" };
  return { status, headers: { ...type, ...headers }, body: JSON.stringify(value) };
}

/** A sentence for people, where there is no page. */
export function sentence(body: string): ConsoleAnswer {
  const headers = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" };
  return { status: httpStatuses.serviceUnavailable, headers, body };
}

/** A status that says it all. */
export function problem(status: number): ConsoleAnswer {
  return json(status, {});
}

/** Sends a browser elsewhere. */
export function redirect(location: string, cookies: readonly string[] = []): ConsoleAnswer {
  const headers = { location, "cache-control": "no-store", "set-cookie": cookies };
  return { status: httpStatuses.seeOther, headers, body: "" };
}
