import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import { httpStatuses } from "../../core/base/http-status.js";

/** Response of a page. A stream is sent as it comes. */
export interface Page {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Readable;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request for a page. */
export interface PageAsk {
  readonly path: string;
  readonly query: URLSearchParams;
  /** The host name in the request, without its port. Empty if it has none. */
  readonly host: string;
  /** The header `authorization`. Undefined: none. */
  readonly authorization: string | undefined;
  /** Aborted when the caller has disconnected. */
  readonly signal: AbortSignal;
}

/** Maximum size of a request's head, in bytes. */
const headBytesMax = 8_192;

/** Maximum time to receive a request's head, in milliseconds. */
const headMsMax = 10_000;

/**
 * Creates a small server of pages, for people and scrapers. It accepts only GET and HEAD, and needs
 * only one request per connection. It does not listen yet.
 *
 * @param answer must not reject; an error is a bug, and becomes a 500 without details
 */
export function createGetServer(
  answer: (ask: PageAsk) => Promise<Page>,
  onBug: (thrown: unknown) => void,
): Server {
  const settings = {
    maxHeaderSize: headBytesMax,
    headersTimeout: headMsMax,
    requestTimeout: headMsMax,
    connectionsCheckingInterval: 5_000,
  };
  return createServer(settings, (request, response) => {
    // A client that leaves early is not an error of this process.
    request.on("error", () => {});
    response.on("error", () => {});
    // Bodies are ignored.
    request.resume();
    serve(request, response, answer).catch((thrown: unknown) => {
      onBug(thrown);
      if (!response.headersSent)
        send(response, textPage(httpStatuses.internalServerError, "Internal error."));
      else response.destroy();
    });
  });
}

/** Creates a page of plain text. */
export function textPage(status: number, body: string): Page {
  return { status, contentType: "text/plain; charset=utf-8", body: `${body}\n` };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  answer: (ask: PageAsk) => Promise<Page>,
): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    send(response, {
      ...textPage(httpStatuses.methodNotAllowed, "Method not allowed; use GET."),
      headers: { allow: "GET" },
    });
    return;
  }
  const abort = new AbortController();
  response.once("close", () => abort.abort());
  const [path = "", ...rest] = (request.url ?? "").split("?");
  const page = await answer({
    path,
    query: new URLSearchParams(rest.join("?")),
    host: (request.headers.host ?? "").replace(/:[0-9]*$/, ""),
    authorization: request.headers.authorization,
    signal: abort.signal,
  });
  if (request.method === "GET") return send(response, page);
  // No client reads the stream, and it would wait for a reader for ever.
  if (page.body instanceof Readable) page.body.destroy();
  send(response, { ...page, body: "" });
}

function send(response: ServerResponse, { status, contentType, body, headers }: Page): void {
  if (response.destroyed) {
    if (body instanceof Readable) body.destroy();
    return;
  }
  response.writeHead(status, {
    "content-type": contentType,
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    ...headers,
  });
  if (typeof body === "string") response.end(body);
  // A client that leaves early ends the source, too.
  else pipeline(body, response, () => {});
}
