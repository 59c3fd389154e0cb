import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import { httpStatuses } from "../../core/base/http-status.js";

/** What a page answers; a stream is sent as it comes. */
export interface Page {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Readable;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A question of a caller. */
export interface PageAsk {
  readonly path: string;
  readonly query: URLSearchParams;
  /** The host that the caller believes to speak to, without its port; empty when it says none. */
  readonly host: string;
  /** The header of that name; undefined: none. */
  readonly authorization: string | undefined;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
}

/** The largest head of a request, in bytes. */
const headBytesMax = 8_192;

/** How long a request's head may take, in milliseconds. */
const headMsMax = 10_000;

/**
 * A small server of pages, for people and scrapers: GET and nothing else, one request a connection
 * is enough for it. It does not listen yet.
 *
 * @param answer must not reject; what it throws becomes a 500 without words
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
    // A client that leaves early is no error of ours.
    request.on("error", () => {});
    response.on("error", () => {});
    // Whatever a body holds is nobody's.
    request.resume();
    serve(request, response, answer).catch((thrown: unknown) => {
      onBug(thrown);
      if (!response.headersSent)
        send(response, textPage(httpStatuses.internalServerError, "Internal error."));
      else response.destroy();
    });
  });
}

/** A page of plain text. */
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
  // Nobody reads it, and it would wait for its reader for ever.
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
  // Whoever leaves early ends the source too.
  else pipeline(body, response, () => {});
}
