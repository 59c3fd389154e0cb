import { noted, type Tree, type TreeMap } from "../base/document.js";
import { labelsOf, objectMetadata } from "./labels.js";
import type { ValueSource } from "./value-source.js";

const dnsPort = 53;

/** Who may reach the pods, and whom they may reach. */
export function networkPolicy(source: ValueSource): TreeMap {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: objectMetadata(source),
    spec: {
      podSelector: { matchLabels: labelsOf(source) },
      policyTypes: ["Ingress", "Egress"],
      ingress: ingress(source),
      egress: egress(source),
    },
  };
}

function ingress(source: ValueSource): readonly Tree[] {
  return [
    noted(
      "Proxies. Label only their namespaces. If `tls` is off, anyone with access " +
        "can act as a proxy: request decisions, report usage and refund hits.",
      {
        from: [{ namespaceSelector: selector(source, "networkPolicy.clientLabels") }],
        ports: [
          { port: "grpc", protocol: "TCP" },
          ...source.listIf({ name: "controlPort.enabled" }, [{ port: "control", protocol: "TCP" }]),
        ],
      },
    ),
    noted(
      "Monitoring. Probes of the kubelet come from the pod's own node and are always allowed.",
      {
        from: [{ namespaceSelector: selector(source, "networkPolicy.monitoringLabels") }],
        ports: [{ port: "monitoring", protocol: "TCP" }],
      },
    ),
  ];
}

function egress(source: ValueSource): readonly Tree[] {
  return [
    {
      to: [
        {
          namespaceSelector: selector(source, "networkPolicy.dnsNamespaceLabels"),
          podSelector: selector(source, "networkPolicy.dnsPodLabels"),
        },
      ],
      ports: ["UDP", "TCP"].map((protocol) => ({ port: dnsPort, protocol })),
    },
    ...source.listIf({ name: "redis.enabled" }, [
      noted("A Redis outside the cluster needs its own rule with an ipBlock instead.", {
        to: [{ namespaceSelector: {}, podSelector: selector(source, "redis.podLabels") }],
        ports: [{ port: source.number("redis.port"), protocol: "TCP" }],
      }),
    ]),
    ...source.itemsOf("networkPolicy.extraEgress"),
  ];
}

function selector(source: ValueSource, name: Parameters<ValueSource["collection"]>[0]): TreeMap {
  return { matchLabels: source.collection(name) };
}
