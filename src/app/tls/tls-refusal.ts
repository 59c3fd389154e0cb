import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../core/base/clock.js";
import { LogInterval } from "../../core/base/log-interval.js";
import type { Logger } from "../base/logger.js";
import { type ClientSan, holdsSan } from "../options/tls-client-san.js";

/** Causes of connections refused before their first call: what happened, and the remedy. */
const tlsRefusalRows = {
  tooManyHandshakes: "too many handshakes at the same time: add replicas",
  handshakeTimeout: "a client connected and did not finish its handshake",
  connectionLost: "a client left during its handshake, as port checks do",
  plaintext: "a client does not speak TLS: give its cluster a TLS transport socket",
  tlsVersion: "a client supports no TLS version or cipher suite of ours: it needs TLS 1.2 or newer",
  notHttp2: "a client did not negotiate HTTP/2 with ALPN, which gRPC needs",
  noClientCertificate: "a client presented no certificate: configure one in its cluster",
  untrustedClientCertificate:
    "a client's certificate is not signed by a CA in GRPC_CLIENT_TLS_CACERT",
  expiredClientCertificate: "a client's certificate is not valid at this time: renew it",
  wrongClientSan: "a client's certificate does not contain the name in GRPC_CLIENT_TLS_SAN",
  serverCertificateDistrusted:
    "a client rejects our certificate: check its CA certificates, and the names " +
    "and expiry of the certificate",
  other: "a handshake failed for another reason",
} as const;

/** Cause of a connection that was refused before its first call. */
export type TlsRefusal = keyof typeof tlsRefusalRows;

/** Causes that are normal for a port, or that anyone may trigger: only counted. */
const quietRefusals: ReadonlySet<TlsRefusal> = new Set(["handshakeTimeout", "connectionLost"]);

/** Minimum time between two lines on one cause: a fleet with a wrong certificate tries all day. */
export const refusalReportMsMin = 60_000;

/** Counts refused connections, and logs each cause from time to time, without data of callers. */
export class TlsRefusals {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #countByCause = new Map<TlsRefusal, number>();
  readonly #lines = new LogInterval<TlsRefusal>(refusalReportMsMin);

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Counts by cause. A cause appears with its first connection. */
  get countByCause(): ReadonlyMap<TlsRefusal, number> {
    return this.#countByCause;
  }

  note(cause: TlsRefusal): void {
    const count = (this.#countByCause.get(cause) ?? 0) + 1;
    this.#countByCause.set(cause, count);
    if (quietRefusals.has(cause)) return;
    if (!this.#lines.begins(cause, this.#clock.monotonicMs())) return;
    const sentence = `A gRPC connection was refused: ${tlsRefusalRows[cause]}.`;
    this.#logger.warn({ event: "tlsRefused", cause, count }, sentence);
  }
}

/** Returns the objection to a client's certificate after the handshake. Undefined: none. */
export function clientRefusal(
  socket: TLSSocket,
  clientSan: ClientSan | undefined,
): TlsRefusal | undefined {
  if (clientSan === undefined) return undefined;
  const certificate: X509Certificate | undefined = socket.getPeerX509Certificate();
  if (certificate === undefined) return "noClientCertificate";
  return holdsSan(certificate, clientSan) ? undefined : "wrongClientSan";
}

/** Returns why a handshake failed, from the error's code and OpenSSL's verdict on the client. */
export function failureCause(error: unknown, socket: TLSSocket): TlsRefusal {
  // A client's certificate is verified after the handshake; the error only reports its end.
  const verdict = codeOf(socket.authorizationError);
  if (verdict !== "") return certificateCauses.get(verdict) ?? "untrustedClientCertificate";
  const code = codeOf(error);
  const row = codeRows.find(({ pattern }) => pattern.test(code));
  return row?.cause ?? "other";
}

/** Source: openssl-verification-options(1), as Node names its results. */
const certificateCauses: ReadonlyMap<string, TlsRefusal> = new Map([
  ["CERT_HAS_EXPIRED", "expiredClientCertificate"],
  ["CERT_NOT_YET_VALID", "expiredClientCertificate"],
]);

/** The first matching row counts. Source: OpenSSL's sslerr.h, RFC 8446, section 6.2. */
const codeRows: readonly { readonly pattern: RegExp; readonly cause: TlsRefusal }[] = [
  { pattern: /^ERR_TLS_HANDSHAKE_TIMEOUT$/, cause: "handshakeTimeout" },
  { pattern: /^(?:ECONNRESET|EPIPE|ETIMEDOUT)$/, cause: "connectionLost" },
  { pattern: /PEER_DID_NOT_RETURN_A_CERTIFICATE$/, cause: "noClientCertificate" },
  { pattern: /HTTP_REQUEST|HTTPS_PROXY|WRONG_VERSION_NUMBER$/, cause: "plaintext" },
  { pattern: /NO_APPLICATION_PROTOCOL$/, cause: "notHttp2" },
  { pattern: /UNSUPPORTED_PROTOCOL|NO_SHARED_CIPHER|VERSION_TOO_LOW/, cause: "tlsVersion" },
  { pattern: /NO_SUITABLE_(?:KEY_SHARE|SIGNATURE_ALGORITHM)/, cause: "tlsVersion" },
  { pattern: /ALERT_(?:UNKNOWN_CA|BAD_CERTIFICATE)/, cause: "serverCertificateDistrusted" },
  { pattern: /ALERT_CERTIFICATE_(?:EXPIRED|UNKNOWN)/, cause: "serverCertificateDistrusted" },
  { pattern: /ALERT_UNSUPPORTED_CERTIFICATE/, cause: "serverCertificateDistrusted" },
];

/** Returns the code of an error, or the text in its place. Empty without either. */
function codeOf(error: unknown): string {
  if (typeof error === "string") return error;
  const code: unknown = Reflect.get(Object(error), "code");
  return typeof code === "string" ? code : "";
}
