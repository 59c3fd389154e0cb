import { isGrpcRequest } from "../../core/admission/refusal.js";

/** What a request is to a room, by its headers. */
export interface RoomRequestKind {
  /** What it can show: a page to a person, JSON to a program, a status to gRPC. */
  readonly wants: "page" | "json" | "grpc";
  /** Whether a browser goes to a page with it. */
  readonly isNavigation: boolean;
  /** GET or HEAD: it may be sent again without harm. */
  readonly isSafe: boolean;
  readonly isHead: boolean;
  /** A browser asks whether another site's request may be sent. */
  readonly isPreflight: boolean;
  /** A browser loads ahead what nobody has asked for yet. */
  readonly isPrefetch: boolean;
}

/** Characters of a header that are looked at. */
const headerCharsMax = 1_024;

/**
 * How a room treats a request without a session:
 *
 * - A CORS preflight (OPTIONS with `origin` and `access-control-request-method`) passes: it carries
 *   no cookie by design, and what follows it is looked at by itself.
 * - With `visitors: navigations` only navigations wait: browsers say `sec-fetch-mode: navigate`;
 *   where that header is missing, a GET or HEAD that accepts `text/html`, and any form that is
 *   posted and accepts it. All others pass.
 * - With `visitors: all` every request waits. What accepts `text/html` is shown the page, gRPC gets
 *   UNAVAILABLE, and everything else JSON.
 * - GET and HEAD join the line. HEAD is answered like GET, without the body.
 * - Every other method joins as well, but is never sent again by the page: the answer is always 503
 *   without a refresh, and says that nothing was delivered.
 * - A prefetch or prerender is answered 503 without joining: nobody waits for it.
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
