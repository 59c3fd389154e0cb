import { requestBytesBounds } from "../../policy/cel/request-bytes.js";
import type { Tree, TreeMap } from "../base/document.js";

/** What one value of an installation may be. */
export type ValueRow = {
  /** One sentence or two, for the comment and the schema. */
  readonly docs: string;
} & (
  | { readonly kind: "text"; readonly defaultValue: string; readonly pattern: string }
  | {
      readonly kind: "number";
      readonly defaultValue: number;
      readonly min: number;
      readonly max: number;
    }
  | { readonly kind: "switch"; readonly defaultValue: boolean }
  /** Texts by name. */
  | { readonly kind: "texts"; readonly defaultValue: Readonly<Record<string, string>> }
  /** What Kubernetes takes there; only Kubernetes checks it. */
  | { readonly kind: "map"; readonly defaultValue: TreeMap }
  | { readonly kind: "list"; readonly defaultValue: readonly Tree[] }
);

const dnsLabel = "^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$";
const objectName = "^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$";
const portMax = 65_535;

/**
 * Everything that installations differ in: what plain manifests are made with, and the values of
 * the chart. The names are paths: `image.tag` is `tag` in the map `image`.
 */
const valueRows = {
  name: {
    kind: "text",
    defaultValue: "headgate",
    pattern: dnsLabel,
    docs: "The name of all objects. Proxies find Headgate by it.",
  },
  "image.repository": {
    kind: "text",
    defaultValue: "headgate",
    pattern: "^[a-z0-9][-a-zA-Z0-9._/:]{0,254}$",
    docs: "Your image, without its tag.",
  },
  "image.tag": {
    kind: "text",
    defaultValue: "0.1.0",
    pattern: "^[A-Za-z0-9_][-A-Za-z0-9._]{0,127}$",
    docs: "A version instead of `latest`, so that a rollback works.",
  },
  "image.digest": {
    kind: "text",
    defaultValue: "",
    pattern: "^(sha256:[0-9a-f]{64})?$",
    docs:
      "The digest, such as sha256:..., instead of the tag: it pins exactly the " +
      "image that you pushed.",
  },
  "image.pullPolicy": {
    kind: "text",
    defaultValue: "IfNotPresent",
    pattern: "^(Always|IfNotPresent|Never)$",
    docs: "When the image is pulled.",
  },
  imagePullSecrets: {
    kind: "list",
    defaultValue: [],
    docs: "Secrets for the registry, such as [{name: registry}].",
  },
  "replicas.min": {
    kind: "number",
    defaultValue: 2,
    min: 1,
    max: 1_000,
    docs: "Minimum number of replicas. Without Redis, each enforces its share.",
  },
  "replicas.max": {
    kind: "number",
    defaultValue: 8,
    min: 1,
    max: 1_000,
    docs: "Maximum number of replicas.",
  },
  "replicas.cpuPercent": {
    kind: "number",
    defaultValue: 70,
    min: 10,
    max: 100,
    docs: "CPU usage, in percent of the request, at which replicas are added.",
  },
  "autoscaling.enabled": {
    kind: "switch",
    defaultValue: true,
    docs: "Whether the number of replicas follows the load. If false: always replicas.min.",
  },
  "redis.enabled": {
    kind: "switch",
    defaultValue: true,
    docs: "Whether replicas share their counts in a Redis. If false, each counts on its own.",
  },
  "redis.secretName": {
    kind: "text",
    defaultValue: "headgate-redis",
    pattern: objectName,
    docs: "The Secret with `url` and `auth` (`user:password`) of that Redis.",
  },
  "redis.port": {
    kind: "number",
    defaultValue: 6_379,
    min: 1,
    max: portMax,
    docs: "The port of the Redis pods, for the network policy.",
  },
  "redis.podLabels": {
    kind: "texts",
    defaultValue: { "app.kubernetes.io/name": "redis" },
    docs: "The labels of the Redis pods, in any namespace, for the network policy.",
  },
  "ports.grpc": {
    kind: "number",
    defaultValue: 8_081,
    min: 1,
    max: portMax,
    docs: "The decision port.",
  },
  "ports.control": {
    kind: "number",
    defaultValue: 18_000,
    min: 1,
    max: portMax,
    docs: "The control port: Envoys get their shares and report their load here.",
  },
  "controlPort.enabled": {
    kind: "switch",
    defaultValue: true,
    docs: "Whether the control port is open. A policy without services does not need it.",
  },
  "tls.enabled": {
    kind: "switch",
    defaultValue: true,
    docs:
      "Whether both ports use TLS. If false, traffic is readable and anyone with " +
      "access can act as a proxy: request decisions, report usage and refund hits. " +
      "A mesh must prevent both.",
  },
  "tls.secretName": {
    kind: "text",
    defaultValue: "headgate-tls",
    pattern: objectName,
    docs:
      "The Secret with `tls.crt`, `tls.key` and `ca.crt`, in the form that cert-manager " +
      "writes.",
  },
  "tls.clientCertificates": {
    kind: "switch",
    defaultValue: true,
    docs:
      "Whether proxies need a certificate signed by a CA in `ca.crt`. If false, " +
      "anyone who reaches the ports can act as a proxy: request decisions, report " +
      "usage and refund hits.",
  },
  "tls.serverName": {
    kind: "text",
    defaultValue: "",
    pattern: "^([-A-Za-z0-9.]{1,253})?$",
    docs:
      "An additional name in the certificate that proxies expect, besides those of the " +
      "Services.",
  },
  "certManager.enabled": {
    kind: "switch",
    defaultValue: false,
    docs: "Whether cert-manager creates the Secret `tls.secretName`. Install its CRDs first.",
  },
  "certManager.issuer": {
    kind: "map",
    defaultValue: { name: "headgate-ca", kind: "Issuer" },
    docs:
      "The issuer that signs the certificates of Headgate and of the proxies. " +
      "Every client of its CA is accepted.",
  },
  connectionAge: {
    kind: "text",
    defaultValue: "30m",
    pattern: "^([0-9]+(s|m|h))+$",
    docs:
      "Age at which proxies are asked to reconnect. A cluster IP selects a pod for " +
      "each connection, so this is how new pods get their share.",
  },
  "drain.delayMs": {
    kind: "number",
    defaultValue: 5_000,
    min: 0,
    max: 600_000,
    docs:
      "How long calls are still accepted after SIGTERM, while endpoints and health checks " +
      "notice.",
  },
  "drain.graceMs": {
    kind: "number",
    defaultValue: 10_000,
    min: 0,
    max: 600_000,
    docs: "How long calls in flight may then take.",
  },
  cpu: {
    kind: "text",
    defaultValue: "500m",
    pattern: "^([0-9]+m|[0-9]+(\\.[0-9]+)?)$",
    docs: "The CPU request.",
  },
  cpuLimit: {
    kind: "text",
    defaultValue: "",
    pattern: "^([0-9]+m|[0-9]+(\\.[0-9]+)?)?$",
    docs: "The CPU limit. None by default, because a throttled answer arrives too late.",
  },
  ephemeralStorage: {
    kind: "text",
    defaultValue: "",
    pattern: "^([0-9]+[KMG]i)?$",
    docs: "The ephemeral storage limit, such as 64Mi. Only logs are written.",
  },
  memoryMi: {
    kind: "number",
    defaultValue: 512,
    min: 256,
    max: 65_536,
    docs:
      "The memory limit, in MiB. Half of it is requested, and is the maximum " +
      "JavaScript heap. The rest is for tables, buffers and the program.",
  },
  requestBytesMax: {
    kind: "number",
    defaultValue: requestBytesBounds.defaultValue,
    min: requestBytesBounds.min,
    max: requestBytesBounds.max,
    docs:
      "The largest message of a proxy, in bytes: four times its " +
      "max_request_headers_kb. Larger messages are refused.",
  },
  logLevel: {
    kind: "text",
    defaultValue: "info",
    pattern: "^(trace|debug|info|warn|error|fatal)$",
    docs: "The minimum severity of log lines.",
  },
  prometheusUrl: {
    kind: "text",
    defaultValue: "",
    pattern: "^(https?://[-A-Za-z0-9._:/]+)?$",
    docs: "The URL of Prometheus for a policy whose `prometheus` names no `server`.",
  },
  extraEnv: {
    kind: "list",
    defaultValue: [],
    docs: 'Additional settings, such as [{name: LIMIT_RESPONSE_HEADERS_ENABLED, value: "true"}].',
  },
  podAnnotations: { kind: "map", defaultValue: {}, docs: "Additional annotations of the pods." },
  nodeSelector: { kind: "map", defaultValue: {}, docs: "Labels of the nodes that may run pods." },
  tolerations: { kind: "list", defaultValue: [], docs: "Tolerations of the pods." },
  affinity: { kind: "map", defaultValue: {}, docs: "Affinity of the pods." },
  priorityClassName: {
    kind: "text",
    defaultValue: "",
    pattern: "^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$",
    docs: "The priority class of the pods.",
  },
  "networkPolicy.enabled": {
    kind: "switch",
    defaultValue: true,
    docs: "Whether traffic is restricted to proxies, monitoring, Redis and DNS.",
  },
  "networkPolicy.clientLabels": {
    kind: "texts",
    defaultValue: { "headgate.dev/client": "true" },
    docs: "Labels of the namespaces whose proxies may call Headgate.",
  },
  "networkPolicy.monitoringLabels": {
    kind: "texts",
    defaultValue: { "kubernetes.io/metadata.name": "monitoring" },
    docs: "Labels of the namespaces that may scrape.",
  },
  "networkPolicy.dnsNamespaceLabels": {
    kind: "texts",
    defaultValue: { "kubernetes.io/metadata.name": "kube-system" },
    docs: "Labels of the namespace of DNS.",
  },
  "networkPolicy.dnsPodLabels": {
    kind: "texts",
    defaultValue: { "k8s-app": "kube-dns" },
    docs: "Labels of the DNS pods.",
  },
  "networkPolicy.extraEgress": {
    kind: "list",
    defaultValue: [],
    docs: "Additional egress rules: a Redis outside the cluster, sources of signals, a collector.",
  },
  "serviceMonitor.enabled": {
    kind: "switch",
    defaultValue: false,
    docs: "Whether to create a ServiceMonitor for the Prometheus operator. Install its CRDs first.",
  },
  "serviceMonitor.interval": {
    kind: "text",
    defaultValue: "15s",
    pattern: "^[0-9]+(ms|s|m)$",
    docs: "The scrape interval.",
  },
  "serviceMonitor.labels": {
    kind: "texts",
    defaultValue: {},
    docs: "Labels by which the operator finds the ServiceMonitor.",
  },
  policy: {
    kind: "texts",
    defaultValue: {},
    docs: "The policy: texts by file name. An edit is active without a restart.",
  },
} as const satisfies Readonly<Record<string, ValueRow>>;

/** The name of a row. */
export type ValueName = keyof typeof valueRows;

/** The names of the rows of one kind. */
export type ValueNameOf<Kind extends ValueRow["kind"]> = {
  [Name in ValueName]: (typeof valueRows)[Name]["kind"] extends Kind ? Name : never;
}[ValueName];

/** All names, in the order in which people read them. */
export const valueNames: readonly ValueName[] = Object.keys(valueRows).filter(isValueName);

/** A row whose kind does not matter. */
export function valueRow(name: ValueName): ValueRow {
  return valueRows[name];
}

function isValueName(name: string): name is ValueName {
  return Object.hasOwn(valueRows, name);
}
