import type { HeaderFields } from "../base/http2.js";

/** Result of checking a request's header block. */
export type RequestCheck =
  | { readonly kind: "valid"; readonly contentLength: number | undefined }
  | { readonly kind: "malformed" };

const malformed: RequestCheck = { kind: "malformed" };
const withoutLength: RequestCheck = { kind: "valid", contentLength: undefined };

/** Bits of the pseudo-fields of a request that were seen. */
const methodSeen = 1;
const schemeSeen = 2;
const pathSeen = 4;
const authoritySeen = 8;

/**
 * Checks the header block of a request.
 *
 * A CONNECT request is valid with `:authority` alone, so `:path` is certain only for other methods.
 *
 * Source: RFC 9113, sections 8.2 and 8.3.1.
 */
export function checkRequest(fields: HeaderFields): RequestCheck {
  const { count } = fields;
  let seen = 0;
  let index = 0;
  for (; index < count; index += 1) {
    const bit = pseudoBit(fields.name(index));
    if (bit === 0) break;
    if ((seen & bit) !== 0 || !isValue(fields.value(index))) return malformed;
    seen |= bit;
  }
  if (!hasPseudoFields(fields, seen)) return malformed;
  return checkRegular(fields, index);
}

/** Reports whether a header block may end a request: it has no pseudo-fields (section 8.1). */
export function areTrailersValid(fields: HeaderFields): boolean {
  return checkRegular(fields, 0).kind === "valid";
}

/** Returns 0 for other names, including pseudo-fields that requests do not have. */
function pseudoBit(name: string): number {
  switch (name) {
    case ":method":
      return methodSeen;
    case ":scheme":
      return schemeSeen;
    case ":path":
      return pathSeen;
    case ":authority":
      return authoritySeen;
    default:
      return 0;
  }
}

function hasPseudoFields(fields: HeaderFields, seen: number): boolean {
  if ((seen & methodSeen) === 0) return false;
  const method = fields.get(":method");
  if (method === "CONNECT") return seen === (methodSeen | authoritySeen);
  if ((seen & schemeSeen) === 0 || (seen & pathSeen) === 0) return false;
  const path = fields.get(":path") ?? "";
  return path.startsWith("/") || (path === "*" && method === "OPTIONS");
}

function checkRegular(fields: HeaderFields, from: number): RequestCheck {
  const { count } = fields;
  let contentLength: number | undefined;
  for (let index = from; index < count; index += 1) {
    const name = fields.name(index);
    const value = fields.value(index);
    if (!isName(name) || !isValue(value) || isOfTheConnection(name, value)) return malformed;
    if (name === "content-length") {
      const length = parseLength(value);
      if (length === undefined || (contentLength ?? length) !== length) return malformed;
      contentLength = length;
    }
    if (name === "host" && !isSameHost(fields.get(":authority"), value)) return malformed;
  }
  return contentLength === undefined ? withoutLength : { kind: "valid", contentLength };
}

/** Reports whether a field is about the connection. Source: RFC 9113, section 8.2.2. */
function isOfTheConnection(name: string, value: string): boolean {
  switch (name) {
    case "connection":
    case "proxy-connection":
    case "keep-alive":
    case "transfer-encoding":
    case "upgrade":
      return true;
    case "te":
      return value.toLowerCase() !== "trailers";
    default:
      return false;
  }
}

function isSameHost(authority: string | undefined, host: string): boolean {
  return authority === undefined || authority.toLowerCase() === host.toLowerCase();
}

/**
 * Reports whether a name is lower-case, visible, and without a colon. It ends the pseudo-fields, so
 * unknown, late or repeated ones are found here. Source: RFC 9113, section 8.2.1.
 */
function isName(name: string): boolean {
  const { length } = name;
  for (let index = 0; index < length; index += 1) {
    const code = name.charCodeAt(index);
    if (code <= 0x20 || code >= 0x7f || code === 0x3a || (code >= 0x41 && code <= 0x5a)) {
      return false;
    }
  }
  return length > 0;
}

/** A value has no NUL, line end, or white space around it. Source: RFC 9113, section 8.2.1. */
function isValue(value: string): boolean {
  const { length } = value;
  if (length === 0) return true;
  if (isSpace(value.charCodeAt(0)) || isSpace(value.charCodeAt(length - 1))) return false;
  for (let index = 0; index < length; index += 1) {
    const code = value.charCodeAt(index);
    if (code <= 0x0d && (code === 0 || code === 0x0a || code === 0x0d)) return false;
  }
  return true;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** Parses at most 15 digits, which a number holds exactly. Source: RFC 9110, section 8.6. */
function parseLength(value: string): number | undefined {
  return /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}
