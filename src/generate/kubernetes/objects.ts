import { noted, type Tree, type TreeMap } from "../base/document.js";
import { monitoringPort } from "./container.js";
import { deployment } from "./deployment.js";
import { labelsOf, objectMetadata } from "./labels.js";
import type { ValueCondition, ValueSource } from "./value-source.js";

/** A file of objects, which is the same in plain manifests and in the chart. */
export interface ObjectFile {
  /** File name. */
  readonly file: string;
  readonly title: string;
  /** Condition under which the file is included. Undefined: always. */
  readonly condition: ValueCondition | undefined;
  readonly build: (source: ValueSource) => readonly Tree[];
}

/** For cert-manager. Written next to the other files if TLS is on, and applied if it is chosen. */
export const certificateFile = "certificate.yaml";

/** For the Prometheus operator. Always written, and applied if it is chosen. */
export const monitorFile = "servicemonitor.yaml";

/** All files, in the order in which they are applied. */
export const objectFiles: readonly ObjectFile[] = [
  {
    file: "serviceaccount.yaml",
    title: "Headgate never calls the API server, so its pods have no token.",
    condition: undefined,
    build: (source) => [serviceAccount(source)],
  },
  {
    file: "configmap.yaml",
    title:
      "The policy: Headgate reads every *.yaml of this map as one policy. An edit " +
      "becomes active when the kubelet has updated the pods (up to two minutes), " +
      "without a restart. An invalid edit changes nothing; log, metric and " +
      "readiness detail report it. Check it first: headgate check policy.yaml",
    condition: undefined,
    build: (source) => [configMap(source)],
  },
  {
    file: "deployment.yaml",
    title: "The replicas.",
    condition: undefined,
    build: (source) => [deployment(source)],
  },
  {
    file: "service.yaml",
    title: "The Services that proxies call.",
    condition: undefined,
    build: (source) => [
      noted(
        "For proxies that discover a Service's pods themselves (Istio, Envoy " +
          "Gateway), and for scraping.",
        service(source),
      ),
      noted(
        "For a standalone Envoy: the name resolves to the pods (STRICT_DNS), so " +
          "calls are spread over all of them. Behind one cluster IP, a connection " +
          "and all its calls would stay with one pod.",
        podsService(source),
      ),
    ],
  },
  {
    file: "poddisruptionbudget.yaml",
    title: "How many pods a voluntary disruption may remove.",
    condition: undefined,
    build: (source) => [disruptionBudget(source)],
  },
  {
    file: "horizontalpodautoscaler.yaml",
    title: "Scales the number of replicas with the load.",
    condition: { name: "autoscaling.enabled" },
    build: (source) => [autoscaler(source)],
  },
  {
    file: "networkpolicy.yaml",
    title:
      "Allows calls from proxies, scraping by the monitoring, and egress to DNS, " +
      "Redis and the sources of the policy. Nothing else is allowed.",
    condition: { name: "networkPolicy.enabled" },
    build: (source) => [networkPolicy(source)],
  },
  {
    file: certificateFile,
    title:
      "For cert-manager. Install its CRDs first, and an issuer whose CA also signs " +
      "the proxies' certificates.",
    condition: { name: "certManager.enabled" },
    build: (source) => [certificate(source)],
  },
  {
    file: monitorFile,
    title: "For the Prometheus operator. Install its CRDs first.",
    condition: { name: "serviceMonitor.enabled" },
    build: (source) => [serviceMonitor(source)],
  },
];

function serviceAccount(source: ValueSource): TreeMap {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: objectMetadata(source),
    automountServiceAccountToken: false,
  };
}

function configMap(source: ValueSource): TreeMap {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: objectMetadata(source, "@-policy"),
    data: source.collection("policy"),
  };
}

function certificate(source: ValueSource): TreeMap {
  return {
    apiVersion: "cert-manager.io/v1",
    kind: "Certificate",
    metadata: objectMetadata(source),
    spec: {
      secretName: source.text("tls.secretName"),
      dnsNames: [
        source.serviceHost("@-pods"),
        source.serviceHost("@"),
        ...source.listIf({ name: "tls.serverName" }, [source.text("tls.serverName")]),
      ],
      usages: ["server auth"],
      privateKey: { algorithm: "ECDSA", size: 256, rotationPolicy: "Always" },
      issuerRef: source.collection("certManager.issuer"),
    },
  };
}

function serviceMonitor(source: ValueSource): TreeMap {
  const { labels: _ours, ...metadata } = objectMetadata(source);
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "ServiceMonitor",
    metadata: {
      ...metadata,
      labels: { ...labelsOf(source), ...source.entriesOf("serviceMonitor.labels") },
    },
    spec: {
      selector: { matchLabels: labelsOf(source) },
      endpoints: [
        noted("Only one of the two Services has this port, so that no pod is scraped twice.", {
          port: "monitoring",
          path: "/metrics",
          interval: source.text("serviceMonitor.interval"),
        }),
      ],
    },
  };
}

/** For proxies that discover a Service's pods themselves, and for scraping. */
function service(source: ValueSource): TreeMap {
  const name = "monitoring";
  const monitoring = { name, port: monitoringPort, targetPort: name, appProtocol: "http" };
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: objectMetadata(source),
    spec: { selector: labelsOf(source), ports: [...grpcPorts(source), monitoring] },
  };
}

/** For Envoys without a mesh, for which the name resolves to the pods. */
function podsService(source: ValueSource): TreeMap {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: objectMetadata(source, "@-pods"),
    spec: { clusterIP: "None", selector: labelsOf(source), ports: grpcPorts(source) },
  };
}

/** Same ports as in the pods, because a name that resolves to pods has no other ports. */
function grpcPorts(source: ValueSource): readonly Tree[] {
  return [
    {
      name: "grpc",
      port: source.number("ports.grpc"),
      targetPort: "grpc",
      appProtocol: "grpc",
    },
    ...source.listIf({ name: "controlPort.enabled" }, [
      {
        name: "control",
        port: source.number("ports.control"),
        targetPort: "control",
        appProtocol: "grpc",
      },
    ]),
  ];
}

/** Scales the number of replicas with the load. */
function autoscaler(source: ValueSource): TreeMap {
  return {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: objectMetadata(source),
    spec: {
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: source.text("name") },
      minReplicas: noted(
        "HEADGATE_REPLICAS of the Deployment is the same number.",
        source.number("replicas.min"),
      ),
      maxReplicas: source.number("replicas.max"),
      metrics: [
        {
          type: "Resource",
          resource: {
            name: "cpu",
            target: noted(
              "In percent of the request, so that there is room while a new pod starts.",
              {
                type: "Utilization",
                averageUtilization: source.number("replicas.cpuPercent"),
              },
            ),
          },
        },
      ],
      behavior: {
        scaleDown: {
          stabilizationWindowSeconds: noted("Proxies reconnect whenever a pod is removed.", 300),
          policies: [{ type: "Pods", value: 1, periodSeconds: 60 }],
        },
      },
    },
  };
}

/** Limits how many pods may be evicted at the same time. */
function disruptionBudget(source: ValueSource): TreeMap {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: objectMetadata(source),
    spec: {
      maxUnavailable: noted("One at a time, whatever the number of replicas.", 1),
      selector: { matchLabels: labelsOf(source) },
    },
  };
}

const dnsPort = 53;

/** Limits the traffic to and from the pods. */
function networkPolicy(source: ValueSource): TreeMap {
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
