import type { UpstreamTls } from "../../policy/upstream-policy.js";
import type { TreeMap } from "../document.js";
import { isAddress } from "./domains.js";
import { extension } from "./values.js";

/**
 * TLS to a server whose certificate has to be of an authority that is trusted, and to have one of
 * the names. An address is no name that could be asked for.
 *
 * Source: envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext.
 */
export function tlsSocket({
  caFile,
  certificate,
  serverName,
  subjectAltNames,
}: UpstreamTls): TreeMap {
  return extension(
    "envoy.transport_sockets.tls",
    "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
    {
      sni: isAddress(serverName) ? undefined : serverName,
      common_tls_context: {
        tls_params: { tls_minimum_protocol_version: "TLSv1_2" },
        tls_certificates: certificate && [
          {
            certificate_chain: { filename: certificate.certFile },
            private_key: { filename: certificate.keyFile },
          },
        ],
        validation_context: {
          trusted_ca: { filename: caFile },
          match_typed_subject_alt_names: subjectAltNames.map((name) => ({
            san_type: sanType(name),
            matcher: { exact: name },
          })),
        },
      },
    },
  );
}

function sanType(name: string): string {
  if (name.includes("://")) return "URI";
  return isAddress(name) ? "IP_ADDRESS" : "DNS";
}
