import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { systemCaFile } from "../../policy/upstream/client-tls.js";
import { objectName, specObject } from "../base/custom-object.js";
import { noted, type TreeMap } from "../base/document.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { isAddress } from "../envoy/base/domains.js";
import { serviceOf } from "./extension-policy.js";
import { gatewayGroup } from "./gateway-names.js";
import { hasGatewayFeature } from "./gateway-version.js";

/**
 * Returns the TLS settings of a service. Envoy Gateway sets TLS for the Service of an HTTPRoute,
 * and accepts no files: CA certificates are the system's or a secret's. Undefined in plaintext, and
 * if the policy names no Service, which is reported.
 *
 * Source: Gateway API, BackendTLSPolicy; v1 since 1.4, which Envoy Gateway 1.6 includes.
 */
export function serviceTlsPolicy(
  { name, upstream }: ServicePolicy,
  context: EnvoyContext,
): TreeMap | undefined {
  if (upstream?.tls === undefined) return undefined;
  const service = serviceOf(upstream.address);
  if (service === undefined) {
    context.report({
      id: "HG348",
      spot: { service: name, path: ["upstream", "address"] },
      message:
        "the service is not in the cluster, so nothing here makes Envoy Gateway use TLS to it",
      hint: "set tls on your Backend or in a BackendTLSPolicy, or set tls: off",
    });
    return undefined;
  }
  const { tls } = upstream;
  const { serverName, subjectAltNames } = tls;
  const reportAt = (path: readonly string[], message: string, hint: string): void => {
    context.report({
      id: "HG359",
      spot: { service: name, path },
      message,
      hint,
    });
  };
  if (tls.kind === "files" && tls.caFile !== systemCaFile) {
    const hint = "tls: {secret: NAME}, a Secret with ca.crt in the Service's namespace";
    reportAt(
      ["upstream", "tls", "caFile"],
      "Envoy Gateway does not read CA certificates from files",
      hint,
    );
  }
  const file = tls.kind === "files" && tls.certificate !== undefined;
  if (file || (tls.kind === "secret" && tls.isMutual)) {
    const hint =
      "leave it out, and set a Secret in the EnvoyProxy: backendTLS.clientCertificateRef";
    const message = "Envoy Gateway has one client certificate for all services, in its EnvoyProxy";
    reportAt(["upstream", "tls", file ? "certFile" : "mutual"], message, hint);
  }
  if (isAddress(serverName)) {
    const hint =
      "set the host name of the service: tls: {serverName: orders.example.com}, or tls: off";
    reportAt(["upstream", "tls"], "Envoy Gateway validates certificates by host name", hint);
  }
  const version = hasGatewayFeature(context, "backendTlsV1") ? "v1" : "v1alpha3";
  const names = subjectAltNames.filter((one) => one !== serverName);
  return specObject(
    { apiVersion: `${gatewayGroup}/${version}`, kind: "BackendTLSPolicy" },
    { name: objectName(`${name}-tls`), namespace: service.namespace },
    {
      targetRefs: noted("For all its ports, unless sectionName names a port of the Service.", [
        { group: "", kind: "Service", name: service.name },
      ]),
      validation: {
        ...(tls.kind === "secret"
          ? { caCertificateRefs: [{ group: "", kind: "Secret", name: tls.secret }] }
          : { wellKnownCACertificates: "System" }),
        hostname: serverName,
        subjectAltNames: names.length === 0 ? undefined : subjectAltNames.map(subjectAltName),
      },
    },
  );
}

function subjectAltName(name: string): TreeMap {
  return name.includes("://") ? { type: "URI", uri: name } : { type: "Hostname", hostname: name };
}
