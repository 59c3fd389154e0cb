import { Code, type ConnectError } from "@connectrpc/connect";
import { visibleText } from "../../policy/problems/problem.js";

/** The URL that was called, and the credentials that were used. */
export interface AdminAsker {
  readonly url: string;
  readonly hasToken: boolean;
  readonly hasAuthority: boolean;
  readonly hasCertificate: boolean;
}

/** Returns why Headgate was not reached and what to do; undefined if a Headgate answered. */
export function unreachedWords(error: ConnectError, asker: AdminAsker): string | undefined {
  const at = visibleText(asker.url);
  const cause = findCause(error);
  if (cause !== undefined) return `${causeWords(cause, asker)} (${cause.code})`;
  if (error.code === Code.DeadlineExceeded) {
    return `${at} did not answer in time; check its /readyz.`;
  }
  // The only message of HTTP/2 if a connection ends during a call.
  if (/^http\/2 stream closed with error code/i.test(error.rawMessage)) return closedWords(asker);
  // Answers of other servers: a page, or a status without a message.
  const isOther = /^HTTP \d+$|unsupported content type|invalid content type/i.test(
    error.rawMessage,
  );
  return isOther ? noAdminPort(at) : undefined;
}

/** Node's own error of a connection. */
interface Cause {
  readonly code: string;
  readonly message: string;
}

/** Returns the innermost error with a code. */
function findCause(error: unknown): Cause | undefined {
  let found: Cause | undefined;
  let inner: unknown = error;
  for (let depth = 0; depth < 8 && inner instanceof Error; depth += 1) {
    if ("code" in inner && typeof inner.code === "string") {
      found = { code: inner.code, message: inner.message };
    }
    inner = inner.cause;
  }
  return found;
}

function causeWords({ code, message }: Cause, asker: AdminAsker): string {
  const at = visibleText(asker.url);
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const [, names = ""] = /.*(?:altnames|list): (.*)$/.exec(message) ?? [];
    const which = names === "" ? "other names" : visibleText(names.slice(0, namesCharsMax));
    return `The certificate of ${at} is for ${which}; use one of them in --admin-url.`;
  }
  const outOfTime = outOfTimeWords.get(code);
  if (outOfTime !== undefined) return `The certificate of ${at} ${outOfTime}`;
  if (untrustedCodes.has(code)) {
    return asker.hasAuthority
      ? `The certificate of ${at} is not signed by a CA in --admin-ca.`
      : `The certificate of ${at} is signed by an unknown CA; set --admin-ca.`;
  }
  if (code.includes("CERTIFICATE_REQUIRED")) {
    return `${at} requires a client certificate: set --admin-cert and --admin-key.`;
  }
  if (code.startsWith("ERR_SSL_") && code.includes("ALERT")) return closedWords(asker);
  if (code.startsWith("ERR_SSL_") || code === "EPROTO") {
    return `${at} has no TLS version in common with this client; it may be plaintext (http://).`;
  }
  if (code.startsWith("ERR_HTTP2_")) return noAdminPort(at);
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return `The host of ${at} is unknown; check --admin-url or HEADGATE_ADMIN_URL.`;
  }
  if (code === "ECONNRESET" || code === "EPIPE") return closedWords(asker);
  return (
    `No Headgate answers at ${at}; start one (\`headgate serve\`), or set ` +
    "--admin-url or HEADGATE_ADMIN_URL."
  );
}

/** Maximum length of a certificate's names in a message, in characters. */
const namesCharsMax = 200;

const outOfTimeWords: ReadonlyMap<string, string> = new Map([
  ["CERT_HAS_EXPIRED", "has expired; renew it, or correct the clock here."],
  ["CERT_NOT_YET_VALID", "is not valid yet; check the clocks on both sides."],
]);

/** Node's error codes for a certificate that no trusted authority has issued. */
const untrustedCodes: ReadonlySet<string> = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

function noAdminPort(at: string): string {
  return `${at} is not an admin port; its default port is 8082.`;
}

/** A TLS 1.3 server rejects a certificate after the handshake, by closing the connection. */
function closedWords({ url, hasCertificate }: AdminAsker): string {
  const at = visibleText(url);
  const words = `${at} closed the connection; it may be stopping,`;
  if (url.startsWith("http:")) return `${words} or accept only TLS (https://).`;
  return hasCertificate
    ? `${words} or reject the certificate of --admin-cert: another CA, or expired.`
    : `${words} or require a client certificate (--admin-cert, --admin-key).`;
}
