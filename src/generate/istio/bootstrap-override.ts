import { metadata } from "../base/custom-object.js";
import type { TreeMap } from "../base/document.js";
import { renderYaml } from "../base/render.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { mergedBootstrap } from "../envoy/bootstrap/merged-bootstrap.js";

/** What the ConfigMap is called; pods name it in `sidecar.istio.io/bootstrapOverride`. */
const bootstrapConfigMapName = "headgate-bootstrap";

/** The listeners of each kind of proxy that callers' connections come in by. */
const listenersOf = {
  sidecar: ["virtualInbound"],
  edge: ["0.0.0.0_8080", "0.0.0.0_8443"],
} as const;

/**
 * What Envoy reads once, as it starts, in the ConfigMap that Istio's agent hands to it as
 * `--config-yaml`: Envoy merges that into the bootstrap.
 *
 * Source: Istio, `sidecar.istio.io/bootstrapOverride`; pilot-agent, `ISTIO_BOOTSTRAP_OVERRIDE`.
 */
export function bootstrapConfigMap(context: EnvoyContext, namespace: string): TreeMap {
  const { connectionsMax } = context.policy.proxies.listener;
  const limits = listenersOf[context.role].map((name) => {
    return [`envoy.resource_limits.listener.${name}.connection_limit`, connectionsMax];
  });
  const bootstrap = mergedBootstrap(context, {
    clusterNote:
      "Istio's certificates do not apply here. Headgate's control port must accept " +
      "plaintext from inside the cluster, or set certificates in " +
      "proxies.headgate.tls.",
    runtimeKeys: Object.fromEntries(limits),
    hasAdminLayer: true,
  });
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: metadata({ name: bootstrapConfigMapName, namespace }),
    data: { "custom_bootstrap.json": renderYaml(bootstrap) },
  };
}
