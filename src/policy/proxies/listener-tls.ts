import { choice, flag } from "../text/form.js";
import { field, object } from "../text/object.js";
import { file, secretName } from "../text/service-texts.js";
import {
  certificateOf,
  checkCertificate,
  checkSecret,
  subjectAltNames,
} from "../upstream/client-tls.js";

/** Source of a listener's certificate, and of the CA certificates for callers. */
type CertificateSource =
  /** Files as the proxy sees them, read when it starts. */
  | {
      readonly kind: "files";
      readonly certFile: string;
      readonly keyFile: string;
      /** Undefined: callers need no certificate. */
      readonly clientCaFile: string | undefined;
    }
  /** Name of a secret; a proxy follows its changes. */
  | {
      readonly kind: "secret";
      readonly secret: string;
      /** Whether callers must present a certificate that the secret's CA certificates validate. */
      readonly isMutual: boolean;
    };

/** Source: envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext. */
export type ListenerTls = CertificateSource & {
  /** Names, one of which a caller's certificate must have: hosts, IPs or URIs. Empty: any. */
  readonly subjectAltNames: readonly string[];
  /** Default "TLSv1_2". */
  readonly versionMin: "TLSv1_2" | "TLSv1_3";
};

/** `proxies.listener.tls`: from files of the proxy, or from a secret. */
export const listenerTls = object(
  {
    title: "tls of a listener",
    docs:
      "TLS for callers of the listener. With `clientCaFile`, callers must present a " +
      "certificate.",
    needed: [["certFile", "secret"]],
    clashing: [
      ["secret", "certFile"],
      ["secret", "keyFile"],
      ["secret", "clientCaFile"],
      ["mutual", "certFile"],
    ],
  },
  {
    certFile: field(file, "The proxy's certificate: a file path on the proxy."),
    keyFile: field(file, "The key of `certFile`."),
    clientCaFile: field(
      file,
      "The CAs of client certificates. If set, callers must present a certificate.",
    ),
    secret: field(secretName, "A secret with the certificate and its key, instead of files."),
    mutual: field(flag, "Whether callers must present a certificate that the secret's CA signed.", {
      as: "isMutual",
      default: false,
    }),
    subjectAltNames: field(
      subjectAltNames,
      "Names of which the client certificate must have one: hosts, addresses, " +
        "URIs. Default: any name.",
      { default: [] },
    ),
    minVersion: field(
      // Minimum versions that callers may be held to. Source: TlsParameters.TlsProtocol.
      choice({ expected: "TLSv1_2 or TLSv1_3" }, "TLSv1_2", "TLSv1_3"),
      "The minimum TLS version.",
      { as: "versionMin", default: "TLSv1_2" },
    ),
  },
  {
    data({ secret, isMutual, certFile, keyFile, clientCaFile, ...rest }): ListenerTls | undefined {
      if (secret !== undefined) return { kind: "secret", secret, isMutual, ...rest };
      const files = certificateOf({ certFile, keyFile });
      return files && { kind: "files", ...files, clientCaFile, ...rest };
    },
    check(block, data) {
      checkSecret(block);
      if (block.field("secret") === undefined) checkCertificate(block);
      const isNamed = ["secret", "certFile", "keyFile"].some((name) => block.field(name));
      if (!isNamed) {
        const message = "the listener has no certificate";
        const expected = "certFile and keyFile, or a secret";
        block.reader.report(block.fields.node, { id: "HG125", message, expected });
      }
      if (data === undefined || data.subjectAltNames.length === 0 || asksForCertificate(data)) {
        return;
      }
      const message = '"subjectAltNames" needs client certificates, and none are requested';
      const expected = "clientCaFile next to it";
      block.report("subjectAltNames", { id: "HG207", message, expected });
    },
  },
);

/** Reports whether callers must present a certificate. */
export function asksForCertificate(source: CertificateSource): boolean {
  return source.kind === "secret" ? source.isMutual : source.clientCaFile !== undefined;
}
