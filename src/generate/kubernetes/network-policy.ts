import { noted, type Tree, type TreeMap } from "../document.js";
import { labelsOf, metadataOf } from "./labels.js";
import type { ValueSource } from "./value-source.js";

const dnsPort = 53;

/** Who may reach the pods, and whom they may reach. */
export function networkPolicy(source: ValueSource): TreeMap {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: metadataOf(source),
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
      "Proxies. Whoever reaches the control port without a certificate may say that services are " +
        "idle or slow: label the namespaces of proxies, and no others.",
      {
        from: [{ namespaceSelector: selector(source, "networkPolicy.clientLabels") }],
        ports: [
          { port: "grpc", protocol: "TCP" },
          ...source.listIf({ name: "controlPort.enabled" }, [{ port: "control", protocol: "TCP" }]),
        ],
      },
    ),
    noted("The monitoring. The kubelet's probes come from the pod's own node and always may.", {
      from: [{ namespaceSelector: selector(source, "networkPolicy.monitoringLabels") }],
      ports: [{ port: "http", protocol: "TCP" }],
    }),
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
      noted("A Redis outside the cluster needs an ipBlock in a rule of its own instead.", {
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
