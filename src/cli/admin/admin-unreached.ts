import { Code, type ConnectError } from "@connectrpc/connect";
import { visibleText } from "../../policy/problems/problem.js";

/** Who asked whom, and what was brought along. */
export interface AdminAsker {
  readonly url: string;
  readonly hasToken: boolean;
  readonly hasAuthority: boolean;
  readonly hasCertificate: boolean;
}

/** Why nobody was reached, and what to do; undefined where a Headgate answered. */
export function unreachedWords(error: ConnectError, asker: AdminAsker): string | undefined {
  const at = visibleText(asker.url);
  const cause = findCause(error);
  if (cause !== undefined) return `${causeWords(cause, asker)} (${cause.code})`;
  if (error.code === Code.DeadlineExceeded) {
    return `${at} did not answer in time; ask its /readyz how it is.`;
  }
  // All that HTTP/2 says of a connection that ended under a call.
  if (/^http\/2 stream closed with error code/i.test(error.rawMessage)) return closedWords(asker);
  // What other servers answer: a page, or a status without words.
  const isOther = /^HTTP \d+$|unsupported content type|invalid content type/i.test(
    error.rawMessage,
  );
  return isOther ? noAdminPort(at) : undefined;
}

/** What Node itself says of a connection. */
interface Cause {
  readonly code: string;
  readonly message: string;
}

/** The innermost error that has a code. */
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
    return `The certificate of ${at} is for ${which}; --admin-url must have one of them.`;
  }
  const outOfTime = outOfTimeWords.get(code);
  if (outOfTime !== undefined) return `The certificate of ${at} ${outOfTime}`;
  if (untrustedCodes.has(code)) {
    return asker.hasAuthority
      ? `The certificate of ${at} is of another authority than --admin-ca names.`
      : `The certificate of ${at} is of an authority unknown here; name it by --admin-ca.`;
  }
  if (code.includes("CERTIFICATE_REQUIRED")) {
    return `${at} asks for a certificate: name yours by --admin-cert and --admin-key.`;
  }
  if (code.startsWith("ERR_SSL_") && code.includes("ALERT")) return closedWords(asker);
  if (code.startsWith("ERR_SSL_") || code === "EPROTO") {
    return `${at} and we found no common TLS; it may be plaintext (http://).`;
  }
  if (code.startsWith("ERR_HTTP2_")) return noAdminPort(at);
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return `The host of ${at} is not known; check --admin-url or HEADGATE_ADMIN_URL.`;
  }
  if (code === "ECONNRESET" || code === "EPIPE") return closedWords(asker);
  return (
    `No Headgate answers at ${at}; start one (\`headgate serve\`), or name another by ` +
    "--admin-url or HEADGATE_ADMIN_URL."
  );
}

/** Names of a certificate that are shown, in characters. */
const namesCharsMax = 200;

const outOfTimeWords: ReadonlyMap<string, string> = new Map([
  ["CERT_HAS_EXPIRED", "has expired; whoever runs it renews it, unless the clock here is wrong."],
  ["CERT_NOT_YET_VALID", "does not hold yet; look at the clock here, and at its own."],
]);

/** Codes of Node for a certificate of nobody whom we trust. */
const untrustedCodes: ReadonlySet<string> = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

function noAdminPort(at: string): string {
  return `What answers at ${at} is no admin port; it is 8082 where nobody chose another.`;
}

/** A server of TLS 1.3 refuses a certificate after the handshake, by closing. */
function closedWords({ url, hasCertificate }: AdminAsker): string {
  const at = visibleText(url);
  const words = `${at} closed the connection; it may be stopping,`;
  if (url.startsWith("http:")) return `${words} or speak TLS only (https://).`;
  return hasCertificate
    ? `${words} or not take the certificate of --admin-cert: of another authority, or expired.`
    : `${words} or ask for a certificate (--admin-cert, --admin-key).`;
}
