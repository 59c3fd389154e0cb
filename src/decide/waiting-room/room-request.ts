import { isGrpcRequest } from "../../core/admission/refusal.js";

/** Properties of a request that matter to a room, from its headers. */
export interface RoomRequestKind {
  /** The form of response that it can use: a page, JSON, or a gRPC status. */
  readonly wants: "page" | "json" | "grpc";
  /** Whether a browser navigates to a page with it. */
  readonly isNavigation: boolean;
  /** GET or HEAD: it may be sent again without harm. */
  readonly isSafe: boolean;
  readonly isHead: boolean;
  /** A browser asks whether another site's request may be sent. */
  readonly isPreflight: boolean;
  /** A browser loads in advance what no person has requested yet. */
  readonly isPrefetch: boolean;
}

/** Maximum number of characters of a header that are read. */
const headerCharsMax = 1_024;

/**
 * How a room treats a request without a session:
 *
 * - A CORS preflight (OPTIONS with `origin` and `access-control-request-method`) passes: it carries
 *   no cookie by design, and the request that follows it is checked separately.
 * - With `visitors: navigations`, only navigations wait: browsers send `sec-fetch-mode: navigate`.
 *   If that header is missing, a GET or HEAD that accepts `text/html`, and any posted form that
 *   accepts it, count as navigations. All others pass.
 * - With `visitors: all`, every request waits. Requests that accept `text/html` get the page, gRPC
 *   gets UNAVAILABLE, and all others get JSON.
 * - GET and HEAD join the line. HEAD is answered like GET, without the body.
 * - Requests with other methods join as well, but the page never sends them again: the answer is
 *   always 503 without a refresh, and says that nothing was delivered.
 * - A prefetch or prerender is answered 503 without joining, because no person waits for it.
 *
 * Source: W3C Fetch Metadata; Fetch, "CORS-preflight request"; Prerendering Revamped
 * (`sec-purpose`).
 */
export function requestKindOf(headers: ReadonlyMap<string, string>): RoomRequestKind {
  const method = headers.get(":method") ?? "GET";
  const isHead = method === "HEAD";
  const isSafe = isHead || method === "GET";
  const takesHtml = includes(headers.get("accept"), "text/html");
  const mode = headers.get("sec-fetch-mode");
  const isGrpc = isGrpcRequest(headers.get("content-type"));
  return {
    wants: isGrpc ? "grpc" : takesHtml ? "page" : "json",
    isNavigation: !isGrpc && (mode === undefined ? takesHtml : mode === "navigate"),
    isSafe,
    isHead,
    isPreflight:
      method === "OPTIONS" && headers.has("origin") && headers.has("access-control-request-method"),
    isPrefetch: includes(headers.get("sec-purpose") ?? headers.get("purpose"), "prefetch"),
  };
}

function includes(header: string | undefined, word: string): boolean {
  return header?.slice(0, headerCharsMax).toLowerCase().includes(word) === true;
}
