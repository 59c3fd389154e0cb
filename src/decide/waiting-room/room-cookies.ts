import type { HeaderField } from "../../core/base/header-field.js";
import type { RoomCookie } from "../../policy/waiting-rooms/room-policy.js";

/** Maximum number of cookies of one name: a browser may send several, for paths and domains. */
const cookiesReadMax = 4;

/** How long a browser keeps a waiting ticket. Its place may be lost long before. */
const waitingAgeSeconds = 86_400;

/**
 * Returns the values of the first `cookiesReadMax` cookies of a name. Reads each character once,
 * however many cookies there are.
 *
 * Source: RFC 6265, section 4.2.1.
 */
export function cookieValues(header: string | undefined, name: string): readonly string[] {
  const values: string[] = [];
  if (header === undefined) return values;
  const wanted = `${name}=`;
  for (let at = header.indexOf(wanted); at !== -1; at = header.indexOf(wanted, at + 1)) {
    if (!beginsCookie(header, at)) continue;
    const start = at + wanted.length;
    const end = header.indexOf(";", start);
    values.push(header.slice(start, end === -1 ? undefined : end).trim());
    if (values.length === cookiesReadMax) break;
  }
  return values;
}

/** Whether a cookie's name begins there. */
function beginsCookie(header: string, at: number): boolean {
  let before = at - 1;
  while (before >= 0 && header[before] === " ") before -= 1;
  return before < 0 || header[before] === ";";
}

/** The cookie of a place. */
export function waitingCookie(cookie: RoomCookie, ticket: string): HeaderField {
  return setCookie(cookie, ticket, waitingAgeSeconds);
}

/** The cookie of a session. */
export function sessionCookie(cookie: RoomCookie, ticket: string, sessionMs: number): HeaderField {
  return setCookie(cookie, ticket, Math.ceil(sessionMs / 1_000));
}

/** Removes the cookie. */
export function noCookie(cookie: RoomCookie): HeaderField {
  return setCookie(cookie, "", 0);
}

/** Source: RFC 6265, section 4.1; `SameSite` by its successor's draft. */
function setCookie(cookie: RoomCookie, value: string, ageSeconds: number): HeaderField {
  const { name, domain, path, sameSite, isSecure } = cookie;
  const parts = [`${name}=${value}`, `Max-Age=${ageSeconds}`, `Path=${path}`];
  if (domain !== undefined) parts.push(`Domain=${domain}`);
  if (isSecure) parts.push("Secure");
  parts.push("HttpOnly", `SameSite=${sameSiteNames[sameSite]}`);
  return { name: "set-cookie", value: parts.join("; "), isAppended: true };
}

const sameSiteNames = { lax: "Lax", strict: "Strict", none: "None" } as const;
