import type { Block } from "../text/block.js";
import { flag, ruledText } from "../text/form.js";
import { field, items, object } from "../text/object.js";
import { address, file, secretName } from "../text/service-texts.js";

/** Address of a service, and how proxies connect to it. */
export interface UpstreamPlace {
  readonly address: string;
  readonly port: number;
  /** TLS from proxies to it; undefined: plaintext. Default TLS on port 443 only. */
  readonly tls?: UpstreamTls | undefined;
  /**
   * Protocol of the service. Undefined: that of its callers behind a plaintext listener. Behind a
   * TLS listener, where most callers use HTTP/2, what its own TLS negotiates, else HTTP/1.1.
   */
  readonly protocol?: UpstreamProtocol | undefined;
}

/** HTTP version of a service. */
type UpstreamProtocol = "http1" | "http2";

/** How proxies verify a TLS server; paths as the proxy sees them. */
export interface ClientTls {
  readonly caFile: string;
  /** The proxy's certificate, if the server requires one. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | undefined;
  /** The name that is requested and that the certificate has. Default the server's address. */
  readonly serverName: string;
}

/** Source: envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext. */
export type UpstreamTls = (
  | (ClientTls & { readonly kind: "files" })
  | {
      readonly kind: "secret";
      /** Name of a secret with CA certificates; a proxy follows its changes. */
      readonly secret: string;
      /** Whether the proxy presents the secret's certificate. */
      readonly isMutual: boolean;
      /** As of `ClientTls`. */
      readonly serverName: string;
    }
) & {
  /** Names, one of which the certificate must have: hosts, IPs or URIs. Default `serverName`. */
  readonly subjectAltNames: readonly string[];
};

/** The port that uses TLS unless the policy says `tls: off`. */
const tlsPort = 443;

/**
 * The system's trust store, as in the images of Envoy, Istio and Envoy Gateway. Source: Debian,
 * ca-certificates.
 */
export const systemCaFile = "/etc/ssl/certs/ca-certificates.crt";

/** Maximum number of names, one of which a certificate must have. */
export const subjectAltNamesMax = 16;

/** Names in a certificate: hosts, addresses, or URIs such as `spiffe://mesh/ns/shop/sa/a`. */
export const subjectAltNames = items(
  ruledText({
    charsMax: 1_024,
    forbidden: /[^!-~]/,
    expected: "a name in the certificate: a host, an IP address or a URI",
  }),
  { expected: "a list of names; the certificate must have one of them", max: subjectAltNamesMax },
);

const keyFile = field(file, "The key of `certFile`.");

/** `proxies.headgate.tls`. */
export const headgateTls = object(
  { title: "tls", docs: "TLS from proxies to Headgate." },
  {
    caFile: field(
      file,
      "The CA certificates that Headgate's certificate is validated with: a file " +
        "path on the proxy.",
      {
        needs: "a file of CA certificates for Headgate's certificate",
      },
    ),
    certFile: field(file, "The proxy's certificate, if Headgate requires one."),
    keyFile,
    serverName: field(address, "The name in Headgate's certificate. Default: its address."),
  },
  {
    data: ({ caFile = "", serverName, ...files }) => ({
      caFile,
      certificate: certificateOf(files),
      serverName,
    }),
    check: checkCertificate,
  },
);

/** `upstream.tls`. */
export const upstreamTls = object(
  {
    title: "tls of an upstream",
    docs: "TLS from proxies to a service, with validation. {}: with the system's CA certificates.",
    clashing: ["caFile", "certFile", "keyFile"].map((name) => ["secret", name]),
  },
  {
    caFile: field(
      file,
      "The CA certificates that the service's certificate is validated with: a file " +
        "path on the proxy.",
      {
        default: systemCaFile,
      },
    ),
    certFile: field(file, "The proxy's certificate, if the service requires one."),
    keyFile,
    secret: field(secretName, "A secret with the CA certificates, instead of files."),
    mutual: field(flag, "Whether the proxy presents the certificate of the secret.", {
      as: "isMutual",
      default: false,
    }),
    serverName: field(address, "The server name (SNI). Default: the address."),
    subjectAltNames: field(
      subjectAltNames,
      "Names of which the certificate must have one: hosts, addresses, URIs. " +
        "Default: `serverName`.",
      { default: [] },
    ),
  },
  {
    data: (read) => read,
    check(block) {
      checkCertificate(block);
      checkSecret(block);
    },
  },
);

/** Returns a certificate and its key; undefined if one of them is missing. */
export function certificateOf({
  certFile,
  keyFile,
}: {
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
}): ClientTls["certificate"] {
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile };
}

/** Reports a certificate without a key, or a key without a certificate. */
export function checkCertificate(block: Block): void {
  for (const [name, other] of [
    ["certFile", "keyFile"],
    ["keyFile", "certFile"],
  ] as const) {
    if (block.field(name) === undefined || !block.isLeftOut(other)) continue;
    const message = `"${name}" has no effect without "${other}"`;
    block.report(name, { id: "HG207", message, expected: `${other} next to it` });
  }
}

/** Refuses files beside a secret, and settings of a secret without one. */
export function checkSecret(block: Block): void {
  if (block.field("secret") === undefined) {
    if (block.field("mutual") === undefined) return;
    const message = '"mutual" applies to a secret, and none is set';
    block.report("mutual", { id: "HG207", message, expected: "a secret next to it" });
    return;
  }
  const files = ["caFile", "clientCaFile", "certFile", "keyFile"];
  const other = files.find((name) => block.field(name) !== undefined);
  if (other !== undefined) block.refusePair(other, "secret");
}

/** Returns `tls` of an upstream: on if it is set, and by default on port 443. */
export function upstreamTlsOf(
  written: typeof upstreamTls.defaults | "off" | undefined,
  { address: host, port }: Pick<UpstreamPlace, "address" | "port">,
): UpstreamTls | undefined {
  if (written === "off" || (written === undefined && port !== tlsPort)) return undefined;
  const { caFile, secret, isMutual, serverName = host, ...rest } = written ?? upstreamTls.defaults;
  const names = rest.subjectAltNames.length === 0 ? [serverName] : rest.subjectAltNames;
  const common = { serverName, subjectAltNames: names };
  if (secret !== undefined) return { kind: "secret", secret, isMutual, ...common };
  return { kind: "files", caFile, certificate: certificateOf(rest), ...common };
}
