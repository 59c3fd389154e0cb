import { asksForCertificate, type ListenerTls } from "../../../policy/proxies/listener-tls.js";
import type { ProxyPolicy } from "../../../policy/proxies/proxies.js";
import type { ClientTls, UpstreamTls } from "../../../policy/upstream/client-tls.js";
import type { Tree, TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "./context.js";
import { isAddress } from "./domains.js";
import { hasFeature, reportOld } from "./envoy-features.js";
import { authoritiesOf, secretConfig, type UsedSecret } from "./secrets.js";
import { extension } from "./values.js";

/**
 * Returns TLS settings for a server, whose certificate must be issued by a trusted CA and have one
 * of the names. An IP address cannot be sent as SNI.
 *
 * Source: envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext.
 */
export function tlsSocket(tls: UpstreamTls, proxies: ProxyPolicy): TreeMap {
  const { serverName, subjectAltNames } = tls;
  return extension(
    "envoy.transport_sockets.tls",
    "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
    {
      sni: isAddress(serverName) ? undefined : serverName,
      common_tls_context: {
        tls_params: { tls_minimum_protocol_version: "TLSv1_2" },
        ...(tls.kind === "secret"
          ? fromSecret({ ...tls, hasCertificate: tls.isMutual, hasAuthorities: true }, proxies)
          : {
              tls_certificates: tls.certificate && [certificateFiles(tls.certificate)],
              validation_context: authorityFile(tls.caFile, subjectAltNames),
            }),
      },
    },
  );
}

/**
 * Returns TLS settings of a listener. If it verifies client certificates, callers must present one.
 *
 * Source: envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext.
 */
export function listenerTlsSocket(tls: ListenerTls, proxies: ProxyPolicy): TreeMap {
  return extension(
    "envoy.transport_sockets.tls",
    "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
    downstreamContext(tls, proxies, { alpn_protocols: ["h2", "http/1.1"] }),
  );
}

/** Returns the same for QUIC. Source: envoy.extensions.transport_sockets.quic.v3. */
export function quicSocket(tls: ListenerTls, context: EnvoyContext): TreeMap {
  if (asksForCertificate(tls) && !hasFeature(context, "quicClientCertificates")) {
    reportOld(context, {
      service: undefined,
      path: ["proxies", "listener", "http3"],
      feature: "quicClientCertificates",
      what: "client certificates over HTTP/3",
      instead: "leave http3 out",
    });
  }
  return extension(
    "envoy.transport_sockets.quic",
    "envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport",
    { downstream_tls_context: downstreamContext(tls, context.policy.proxies, {}) },
  );
}

function downstreamContext(tls: ListenerTls, proxies: ProxyPolicy, more: TreeMap): TreeMap {
  return {
    require_client_certificate: asksForCertificate(tls) ? true : undefined,
    common_tls_context: {
      tls_params: { tls_minimum_protocol_version: tls.versionMin },
      ...(tls.kind === "secret"
        ? fromSecret({ ...tls, hasCertificate: true, hasAuthorities: tls.isMutual }, proxies)
        : {
            tls_certificates: [certificateFiles(tls)],
            validation_context:
              tls.clientCaFile && authorityFile(tls.clientCaFile, tls.subjectAltNames),
          }),
      ...more,
    },
  };
}

function authorityFile(filename: string, names: readonly string[]): TreeMap {
  return { trusted_ca: { filename }, match_typed_subject_alt_names: nameMatchers(names) };
}

/** The names are inline, and the CA certificates in a file that Envoy watches. */
function fromSecret(
  { secret, hasCertificate, hasAuthorities, subjectAltNames: names }: SecretParts,
  proxies: ProxyPolicy,
): TreeMap {
  return {
    tls_certificate_sds_secret_configs: hasCertificate
      ? [secretConfig(secret, proxies)]
      : undefined,
    combined_validation_context: hasAuthorities
      ? {
          default_validation_context: { match_typed_subject_alt_names: nameMatchers(names) },
          validation_context_sds_secret_config: secretConfig(authoritiesOf(secret), proxies),
        }
      : undefined,
  };
}

interface SecretParts extends UsedSecret {
  readonly subjectAltNames: readonly string[];
}

function certificateFiles({ certFile, keyFile }: NonNullable<ClientTls["certificate"]>): TreeMap {
  return { certificate_chain: { filename: certFile }, private_key: { filename: keyFile } };
}

/** Undefined: any name is accepted. */
function nameMatchers(names: readonly string[]): readonly Tree[] | undefined {
  if (names.length === 0) return undefined;
  return names.map((name) => ({ san_type: sanType(name), matcher: { exact: name } }));
}

/** Returns the type of a name in a certificate. Source: SubjectAltNameMatcher.SanType. */
export function sanType(name: string): "URI" | "IP_ADDRESS" | "DNS" {
  if (name.includes("://")) return "URI";
  return isAddress(name) ? "IP_ADDRESS" : "DNS";
}
