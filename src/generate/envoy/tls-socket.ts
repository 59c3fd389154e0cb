import { asksForCertificate } from "../../policy/listener-tls.js";
import type { ListenerTls, ProxyPolicy } from "../../policy/proxy-policy.js";
import type { ClientTls, UpstreamTls } from "../../policy/upstream-policy.js";
import type { Tree, TreeMap } from "../document.js";
import { isAddress } from "./domains.js";
import { authoritiesOf, secretConfig } from "./secrets.js";
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
        tls_certificates: certificate && [certificateFiles(certificate)],
        validation_context: {
          trusted_ca: { filename: caFile },
          match_typed_subject_alt_names: nameMatchers(subjectAltNames),
        },
      },
    },
  );
}

/**
 * TLS of a listener. Where something vouches for callers, they have to show a certificate.
 *
 * Source: envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext.
 */
export function listenerTlsSocket(tls: ListenerTls, proxies: ProxyPolicy): TreeMap {
  return extension(
    "envoy.transport_sockets.tls",
    "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
    {
      require_client_certificate: asksForCertificate(tls) ? true : undefined,
      common_tls_context: {
        tls_params: { tls_minimum_protocol_version: tls.versionMin },
        ...(tls.kind === "files" ? fromFiles(tls) : fromSecret(tls, proxies)),
        alpn_protocols: ["h2", "http/1.1"],
      },
    },
  );
}

function fromFiles(tls: Extract<ListenerTls, { readonly kind: "files" }>): TreeMap {
  const { clientCaFile, subjectAltNames } = tls;
  return {
    tls_certificates: [certificateFiles(tls)],
    validation_context: clientCaFile && {
      trusted_ca: { filename: clientCaFile },
      match_typed_subject_alt_names: nameMatchers(subjectAltNames),
    },
  };
}

function fromSecret(
  { secret, isMutual, subjectAltNames }: Extract<ListenerTls, { readonly kind: "secret" }>,
  proxies: ProxyPolicy,
): TreeMap {
  return {
    tls_certificate_sds_secret_configs: [secretConfig(secret, proxies)],
    combined_validation_context: isMutual
      ? {
          default_validation_context: {
            match_typed_subject_alt_names: nameMatchers(subjectAltNames),
          },
          validation_context_sds_secret_config: secretConfig(authoritiesOf(secret), proxies),
        }
      : undefined,
  };
}

function certificateFiles({ certFile, keyFile }: NonNullable<ClientTls["certificate"]>): TreeMap {
  return { certificate_chain: { filename: certFile }, private_key: { filename: keyFile } };
}

/** Undefined: any name is as good. */
function nameMatchers(names: readonly string[]): readonly Tree[] | undefined {
  if (names.length === 0) return undefined;
  return names.map((name) => ({ san_type: sanType(name), matcher: { exact: name } }));
}

/** What a name in a certificate is. Source: SubjectAltNameMatcher.SanType. */
export function sanType(name: string): "URI" | "IP_ADDRESS" | "DNS" {
  if (name.includes("://")) return "URI";
  return isAddress(name) ? "IP_ADDRESS" : "DNS";
}
