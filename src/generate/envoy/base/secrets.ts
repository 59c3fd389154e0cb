import type { ProxyPolicy } from "../../../policy/proxies/proxies.js";
import { type Document, noted, type Tree, type TreeMap } from "../../base/document.js";
import type { ProxyPlan } from "./proxies.js";
import { typed } from "./values.js";

/** Default folder of the files of secrets. */
const defaultFolder = "/etc/envoy/secrets";

/** Returns the name of a secret's CA certificates, as Istio names them. */
export function authoritiesOf(secret: string): string {
  return `${secret}-cacert`;
}

/**
 * Returns where a proxy finds a certificate or CA certificates: in a file with their name, which
 * `secretFiles` generates. Source: envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig.
 */
export function secretConfig(name: string, proxies: ProxyPolicy): TreeMap {
  return {
    name,
    sds_config: {
      resource_api_version: "V3",
      path_config_source: { path: `${folderOf(proxies)}/${name}.yaml` },
    },
  };
}

function folderOf({ secretsFolder = defaultFolder }: ProxyPolicy): string {
  return secretsFolder;
}

/** A secret, and the parts of it that a proxy uses. */
export interface UsedSecret {
  readonly secret: string;
  readonly hasCertificate: boolean;
  readonly hasAuthorities: boolean;
}

/** Returns the files through which a proxy finds its secrets: certificates, and CA certificates. */
export function secretFiles({ folder, context }: ProxyPlan): readonly Document[] {
  const { proxies, services } = context.policy;
  const { tls } = proxies.listener;
  const isWhole = context.options.form === "bootstrap";
  const used: UsedSecret[] = [];
  if (tls?.kind === "secret" && isWhole) {
    used.push({ secret: tls.secret, hasCertificate: true, hasAuthorities: tls.isMutual });
  }
  for (const { upstream } of services) {
    if (upstream?.tls?.kind !== "secret") continue;
    const { secret, isMutual } = upstream.tls;
    used.push({ secret, hasCertificate: isMutual, hasAuthorities: true });
  }
  const contents = new Map<string, TreeMap>();
  for (const { secret, hasCertificate, hasAuthorities } of used) {
    const mounted = `${folderOf(proxies)}/${secret}`;
    if (hasCertificate) contents.set(secret, certificate(mounted));
    if (hasAuthorities) contents.set(authoritiesOf(secret), authorities(mounted));
  }
  return [...contents].map(([name, fields]) => ({
    path: `${isWhole ? "" : "fragments/"}${folder}/secrets/${name}.yaml`,
    kind: { format: "yaml", is: "envoy", message: "envoy.service.discovery.v3.DiscoveryResponse" },
    title: `Copy it to ${folderOf(proxies)}, next to the folder with the secret's files.`,
    parts: [{ resources: [typed(secretMessage, { name, ...fields })] }],
  }));
}

const secretMessage = "envoy.extensions.transport_sockets.tls.v3.Secret";

function certificate(mounted: string): TreeMap {
  return {
    tls_certificate: {
      certificate_chain: { filename: `${mounted}/tls.crt` },
      private_key: { filename: `${mounted}/tls.key` },
      watched_directory: watched(mounted),
    },
  };
}

function authorities(mounted: string): TreeMap {
  const trusted = { filename: `${mounted}/ca.crt` };
  return { validation_context: { trusted_ca: trusted, watched_directory: watched(mounted) } };
}

function watched(path: string): Tree {
  return noted("Envoy reads it again when a file is moved into this folder, as Kubernetes does.", {
    path,
  });
}
