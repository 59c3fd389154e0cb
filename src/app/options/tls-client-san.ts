import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { ParsedOption } from "./option.js";

/** A subject alternative name that a client's certificate must contain. */
export interface ClientSan {
  readonly kind: "dns" | "uri" | "ip" | "email";
  readonly value: string;
}

/** Maximum length in characters. Source: SPIFFE-ID, section 2.3 (the longest kind of all). */
export const clientSanCharsMax = 2_048;

/**
 * Parses a name of any kind. The reason why a text is not a name does not contain it.
 *
 * An IPv6 address may be in brackets, and a DNS name may end with a dot, as in
 * envoyproxy/ratelimit, which accepts only these two kinds.
 */
export function parseClientSan(text: string): ParsedOption<ClientSan> {
  if (text.length <= clientSanCharsMax) {
    const address = text.replace(/^\[(.*)\]$/, "$1");
    if (isIP(address) !== 0) return san("ip", address);
    // A scheme with more than a port: `shop:8080` is a mistake, not a URI.
    if (/^[a-z][a-z0-9+.-]*:(?!\d+$)[!-~]+$/i.test(text)) return san("uri", text);
    if (/^[!-?A-~]+@[a-z0-9.-]+$/i.test(text)) return san("email", text);
    if (dnsNamePattern.test(text)) return san("dns", text.replace(/\.$/, ""));
  }
  const message = "must be a DNS name without wildcards, a URI, an IP or an email address";
  return { kind: "problem", message };
}

/** Labels separated by dots. With a leading dot, OpenSSL would match any name below. */
const dnsNamePattern = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?$/i;

function san(kind: ClientSan["kind"], value: string): ParsedOption<ClientSan> {
  return { kind: "value", value: { kind, value } };
}

/**
 * Reports whether a certificate has the name among its subject alternative names. Its common name
 * never counts. A DNS name also matches a wildcard in place of its first label, if two more labels
 * follow: `*.shop.example` is a certificate for `edge.shop.example`. URIs must be equal, character
 * by character.
 *
 * Source: RFC 5280, section 4.2.1.6; RFC 6125, section 6.4.
 */
export function holdsSan(certificate: X509Certificate, { kind, value }: ClientSan): boolean {
  switch (kind) {
    case "dns":
      return certificate.checkHost(value, hostRules) !== undefined;
    case "ip":
      return certificate.checkIP(value) !== undefined;
    case "email":
      return certificate.checkEmail(value, { subject: "never" }) !== undefined;
    case "uri":
      return uriNames(certificate.subjectAltName ?? "").includes(value);
  }
}

const hostRules = { subject: "never", partialWildcards: false } as const;

/** Returns the URIs among alternative names in Node's format. */
export function uriNames(alternativeNames: string): readonly string[] {
  return namesOfKind(alternativeNames, "URI");
}

/**
 * Returns the URIs, and then the DNS names, that may identify a peer: of each kind only those that
 * cannot be of the other kind, in printable ASCII without blanks.
 */
export function identityNames(alternativeNames: string): readonly string[] {
  const uris = uriNames(alternativeNames).filter((name) =>
    /^[a-z][a-z0-9+.-]*:[!-~]+$/i.test(name),
  );
  const dnsNames = namesOfKind(alternativeNames, "DNS").filter((name) => /^[\w*.-]+$/.test(name));
  return [...uris, ...dnsNames];
}

/**
 * Returns those of a kind in `DNS:a, URI:spiffe://b, URI:"c, d"`. A name that could be taken for
 * several is quoted, as in JSON.
 */
function namesOfKind(alternativeNames: string, wanted: "URI" | "DNS"): readonly string[] {
  const names: string[] = [];
  const parts = alternativeNames.matchAll(/(?:^|, )([^:,"]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?=, |$)/g);
  for (const [, kind, text = ""] of parts) {
    if (kind !== wanted) continue;
    const name: unknown = text.startsWith('"') ? JSON.parse(text) : text;
    if (typeof name === "string") names.push(name);
  }
  return names;
}
