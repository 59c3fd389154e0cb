import { randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Clock } from "../../core/base/clock.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../core/base/json.js";
import type { SessionIdentity } from "../access/admin-access.js";
import type { EndedSessions } from "./ended-sessions.js";
import { type Seal, sealedCharsMax } from "./seal.js";

/** A session of a signed-in user. */
export interface Session {
  readonly id: string;
  readonly identity: SessionIdentity;
  readonly untilEpochMs: number;
}

/** What `Sessions` need. */
export interface SessionsParts {
  readonly seal: Seal;
  readonly clock: Pick<Clock, "epochUs">;
  /** The maximum duration of a session, in milliseconds. */
  readonly sessionMs: number;
  /** Whether browsers connect over TLS. */
  readonly isTls: boolean;
  /** The host under which browsers reach the console, if it differs from the request's host. */
  readonly host: string | undefined;
  readonly ended: Pick<EndedSessions, "has">;
}

/**
 * Sessions of browsers. The browser stores the session as a sealed cookie that contains the
 * identity only; its permissions are looked up at each call.
 */
export class Sessions {
  readonly #parts: SessionsParts;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
  }

  /**
   * Starts a session.
   *
   * @param untilEpochMs when it ends at the latest; default: after the maximum duration
   * @returns the session and its cookie; undefined if the cookie would be too long for browsers
   */
  begin(
    identity: SessionIdentity,
    untilEpochMs = Number.POSITIVE_INFINITY,
  ): { readonly session: Session; readonly cookie: string } | undefined {
    const nowMs = this.#nowMs();
    const id = randomBytes(16).toString("hex");
    const endMs = Math.floor(Math.min(untilEpochMs, nowMs + this.#parts.sessionMs));
    const session: Session = { id, identity, untilEpochMs: endMs };
    const sealed = this.#parts.seal.close("session", { ...session, identity: { ...identity } });
    const cookie = this.cookie("session", sealed, { seconds: Math.ceil((endMs - nowMs) / 1_000) });
    // Including its name and attributes.
    return cookie.length > sealedCharsMax ? undefined : { session, cookie };
  }

  /** The session of a request; undefined if there is none, or it has ended. */
  of(headers: IncomingHttpHeaders): Session | undefined {
    const sealed = this.cookieOf(headers, "session");
    const opened = sealed === undefined ? undefined : this.#parts.seal.open("session", sealed);
    const session = opened && readSession(opened);
    return session !== undefined && this.isLive(session) ? session : undefined;
  }

  isLive({ id, untilEpochMs }: Session): boolean {
    return untilEpochMs > this.#nowMs() && !this.#parts.ended.has(id);
  }

  /** The CSRF token that calls of this session must send in `x-headgate-csrf`. */
  csrfOf({ id }: Session): string {
    return this.#parts.seal.mark(id);
  }

  /** Whether a call comes from the console's own page, which alone knows the CSRF token. */
  isOwnCall(headers: IncomingHttpHeaders, session: Session): boolean {
    const said = Buffer.from(String(headers["x-headgate-csrf"] ?? ""));
    const right = Buffer.from(this.csrfOf(session));
    const isKnown = said.length === right.length && timingSafeEqual(said, right);
    return isKnown && this.isOwnPage(headers);
  }

  /** Whether the browser states that the request comes from a page of the console's own origin. */
  isOwnPage(headers: IncomingHttpHeaders): boolean {
    const { origin, "sec-fetch-site": site } = headers;
    if (origin === undefined && site === undefined) return false;
    return (site ?? "same-origin") === "same-origin" && (!origin || this.#isOwnOrigin(headers));
  }

  /** The value of one of the console's cookies in a request; undefined if it is missing. */
  cookieOf({ cookie = "" }: IncomingHttpHeaders, name: CookieName): string | undefined {
    const start = `${this.#nameOf(name)}=`;
    const found = cookie.split(";").map((one) => one.trim());
    return found.find((one) => one.startsWith(start))?.slice(start.length);
  }

  /** A `set-cookie` value. Only the sign-in cookie is also sent on navigation from other sites. */
  cookie(name: CookieName, value: string, { seconds }: { readonly seconds: number }): string {
    const sameSite = name === "session" ? "Strict" : "Lax";
    const secure = this.#parts.isTls ? "; Secure" : "";
    const text = `${this.#nameOf(name)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly`;
    return `${text}; SameSite=${sameSite}${secure}`;
  }

  /** The prefix prevents other hosts of the domain from setting it. Source: RFC 6265bis 4.1.3.2. */
  #nameOf(name: CookieName): string {
    return `${this.#parts.isTls ? "__Host-" : ""}headgate_${name}`;
  }

  #isOwnOrigin(headers: IncomingHttpHeaders): boolean {
    const { origin = "" } = headers;
    if (!URL.canParse(origin)) return false;
    const { host } = new URL(origin);
    return host === authorityOf(headers) || host === this.#parts.host;
  }

  #nowMs(): number {
    return this.#parts.clock.epochUs() / 1_000;
  }
}

/** The console's cookies: for a session, and for a sign-in in progress. */
type CookieName = "session" | "sign_in";

/** The host and port of a request, in lower case; empty if it has none. */
export function authorityOf(headers: IncomingHttpHeaders): string {
  const named: unknown = headers[":authority"] ?? headers.host;
  return typeof named === "string" ? named.toLowerCase() : "";
}

/** Whether a request comes from a page of another origin. Source: W3C Fetch Metadata. */
export function isOtherOrigin(headers: IncomingHttpHeaders): boolean {
  const { "sec-fetch-site": site } = headers;
  return site !== undefined && site !== "same-origin" && site !== "none";
}

function readSession({ id, identity, untilEpochMs }: JsonObject): Session | undefined {
  if (typeof id !== "string" || !/^[0-9a-f]{32}$/.test(id)) return undefined;
  if (typeof untilEpochMs !== "number") return undefined;
  const read = readIdentity(identity);
  return read && { id, identity: read, untilEpochMs };
}

/** Reads an identity. The console sealed the text, but perhaps in another version. */
function readIdentity(value: JsonValue | undefined): SessionIdentity | undefined {
  if (!isJsonObject(value)) return undefined;
  const { kind, sha256, issuer, subject, groups, shownName } = value;
  if (kind === "token" && typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256)) {
    return { kind, sha256 };
  }
  if (kind !== "claims" || typeof issuer !== "string" || typeof subject !== "string") {
    return undefined;
  }
  if (!Array.isArray(groups)) return undefined;
  return {
    kind,
    issuer,
    subject,
    groups: groups.filter((one) => typeof one === "string"),
    ...(typeof shownName === "string" ? { shownName } : {}),
  };
}
