import type { ClientTls } from "../../policy/upstream/client-tls.js";
import { specObject } from "../base/custom-object.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { balancing, balancingNote, replicaEjection } from "../envoy/base/headgate-clusters.js";
import { isMeshHost } from "./mesh-name.js";

/** Maximum concurrent streams to Headgate: each request in flight may hold one. */
const streamsMax = 100_000;

/** Returns the objects by which the mesh reaches Headgate for decisions. */
export function headgateObjects(context: EnvoyContext): readonly Tree[] {
  const { address, tls } = context.policy.proxies.headgate;
  if (!isMeshHost(address)) {
    context.report({
      id: "HG342",
      spot: { service: undefined, path: ["proxies", "headgate", "address"] },
      message: "Istio names clusters by full host names, and this is not one",
      hint: "such as headgate.headgate.svc.cluster.local, or another DNS name of Headgate",
    });
    return [];
  }
  const place = { name: "headgate", namespace: context.options.namespace };
  const rule = specObject(
    { apiVersion: "networking.istio.io/v1", kind: "DestinationRule" },
    place,
    { host: address, trafficPolicy: trafficPolicy(tls) },
  );
  const isOfCluster = /\.svc(\.|$)/.test(address);
  return isOfCluster ? [rule] : [serviceEntry(address, context), rule];
}

function trafficPolicy(tls: ClientTls | undefined): TreeMap {
  return {
    loadBalancer: { simple: noted(balancingNote, balancing) },
    connectionPool: {
      tcp: { connectTimeout: "0.25s" },
      http: {
        h2UpgradePolicy: noted("gRPC, whatever the name of the port is.", "UPGRADE"),
        http1MaxPendingRequests: noted(
          "Every request in flight may hold a stream to Headgate.",
          streamsMax,
        ),
        http2MaxRequests: streamsMax,
      },
    },
    outlierDetection: noted(replicaEjection.note, {
      splitExternalLocalOriginErrors: true,
      consecutiveLocalOriginFailures: replicaEjection.failureCount,
      consecutive5xxErrors: 0,
      interval: replicaEjection.interval,
      baseEjectionTime: replicaEjection.baseTime,
      maxEjectionPercent: replicaEjection.percentMax,
    }),
    tls: tls && {
      mode: tls.certificate === undefined ? "SIMPLE" : "MUTUAL",
      caCertificates: tls.caFile,
      clientCertificate: tls.certificate?.certFile,
      privateKey: tls.certificate?.keyFile,
      sni: tls.serverName,
      subjectAltNames: [tls.serverName],
    },
  };
}

/** For a Headgate outside of the cluster. Quotas are assigned on its control port. */
function serviceEntry(address: string, context: EnvoyContext): TreeMap {
  const { port, controlPort } = context.policy.proxies.headgate;
  const isQuotaUsed = context.policy.quotas.length > 0;
  return specObject(
    { apiVersion: "networking.istio.io/v1", kind: "ServiceEntry" },
    { name: "headgate", namespace: context.options.namespace },
    {
      hosts: [address],
      location: "MESH_EXTERNAL",
      resolution: "DNS",
      ports: [
        { number: port, name: "grpc", protocol: "GRPC" },
        ...(isQuotaUsed ? [{ number: controlPort, name: "grpc-control", protocol: "GRPC" }] : []),
      ],
    },
  );
}
