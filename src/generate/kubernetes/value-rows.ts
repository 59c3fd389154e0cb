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
    docs: "What all objects are called, and how proxies find them.",
  },
  "image.repository": {
    kind: "text",
    defaultValue: "headgate",
    pattern: "^[a-z0-9][-a-zA-Z0-9._/:]{0,254}$",
    docs: "Where your image is, without its tag.",
  },
  "image.tag": {
    kind: "text",
    defaultValue: "0.1.0",
    pattern: "^[A-Za-z0-9_][-A-Za-z0-9._]{0,127}$",
    docs: "A version and not `latest`, so that a rollback is one.",
  },
  "image.digest": {
    kind: "text",
    defaultValue: "",
    pattern: "^(sha256:[0-9a-f]{64})?$",
    docs:
      "Its digest, such as sha256:..., in place of the tag: what runs is then what was pushed, " +
      "whatever the registry says of the tag.",
  },
  "image.pullPolicy": {
    kind: "text",
    defaultValue: "IfNotPresent",
    pattern: "^(Always|IfNotPresent|Never)$",
    docs: "When the image is fetched.",
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
    docs: "Replicas that there are at least. Without Redis each of them answers with its share.",
  },
  "replicas.max": {
    kind: "number",
    defaultValue: 8,
    min: 1,
    max: 1_000,
    docs: "Replicas that there are at most.",
  },
  "replicas.cpuPercent": {
    kind: "number",
    defaultValue: 70,
    min: 10,
    max: 100,
    docs: "CPU in use, of what is requested, from which on there are more of them.",
  },
  "autoscaling.enabled": {
    kind: "switch",
    defaultValue: true,
    docs: "Whether their number follows the load. Off: replicas.min of them.",
  },
  "redis.enabled": {
    kind: "switch",
    defaultValue: true,
    docs: "Whether replicas share what they count in a Redis. Without it each counts for itself.",
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
    docs: "The port of its pods, for the network policy.",
  },
  "redis.podLabels": {
    kind: "texts",
    defaultValue: { "app.kubernetes.io/name": "redis" },
    docs: "The labels of its pods, in any namespace, for the network policy.",
  },
  "ports.grpc": {
    kind: "number",
    defaultValue: 8_081,
    min: 1,
    max: portMax,
    docs: "Where proxies ask.",
  },
  "ports.control": {
    kind: "number",
    defaultValue: 18_000,
    min: 1,
    max: portMax,
    docs: "Where proxies get their shares, and tell what they do.",
  },
  "controlPort.enabled": {
    kind: "switch",
    defaultValue: true,
    docs: "Whether that port is open; a policy without services needs none.",
  },
  "tls.enabled": {
    kind: "switch",
    defaultValue: true,
    docs:
      "Whether both ports speak TLS. Off, whoever reaches them asks, reports and gives hits back " +
      "like a proxy, and what is said can be read on the way: a mesh has to see to both.",
  },
  "tls.secretName": {
    kind: "text",
    defaultValue: "headgate-tls",
    pattern: objectName,
    docs: "The Secret with `tls.crt`, `tls.key` and `ca.crt`, as cert-manager makes it.",
  },
  "tls.clientCertificates": {
    kind: "switch",
    defaultValue: true,
    docs:
      "Whether proxies need a certificate that the authorities in `ca.crt` vouch for. Off, " +
      "whoever reaches the ports asks, reports and gives hits back like a proxy.",
  },
  "tls.serverName": {
    kind: "text",
    defaultValue: "",
    pattern: "^([-A-Za-z0-9.]{1,253})?$",
    docs: "A name that proxies expect in the certificate, besides those of the Services.",
  },
  "certManager.enabled": {
    kind: "switch",
    defaultValue: false,
    docs: "Whether cert-manager makes the Secret `tls.secretName`; its CRDs must be there.",
  },
  "certManager.issuer": {
    kind: "map",
    defaultValue: { name: "headgate-ca", kind: "Issuer" },
    docs:
      "The issuer that signs it, and the proxies' certificates: every client of its authority " +
      "is let in.",
  },
  connectionAge: {
    kind: "text",
    defaultValue: "30m",
    pattern: "^([0-9]+(s|m|h))+$",
    docs:
      "Age at which proxies are asked to connect again. A cluster IP chooses a pod a connection, " +
      "so this is how new pods get their part.",
  },
  "drain.delayMs": {
    kind: "number",
    defaultValue: 5_000,
    min: 0,
    max: 600_000,
    docs: "How long calls are still taken after SIGTERM, while endpoints and health checks notice.",
  },
  "drain.graceMs": {
    kind: "number",
    defaultValue: 10_000,
    min: 0,
    max: 600_000,
    docs: "How long calls in flight may take after that.",
  },
  cpu: {
    kind: "text",
    defaultValue: "500m",
    pattern: "^([0-9]+m|[0-9]+(\\.[0-9]+)?)$",
    docs: "CPU that is requested.",
  },
  cpuLimit: {
    kind: "text",
    defaultValue: "",
    pattern: "^([0-9]+m|[0-9]+(\\.[0-9]+)?)?$",
    docs: "The limit of CPU. By default there is none: a throttled answer comes too late.",
  },
  ephemeralStorage: {
    kind: "text",
    defaultValue: "",
    pattern: "^([0-9]+[KMG]i)?$",
    docs: "The limit of the node's disk, such as 64Mi, for logs alone: nothing else is written.",
  },
  memoryMi: {
    kind: "number",
    defaultValue: 512,
    min: 256,
    max: 65_536,
    docs:
      "The limit of memory, in MiB. Half of it is requested and JavaScript's heap at most; the " +
      "rest is for tables, buffers and the program.",
  },
  requestBytesMax: {
    kind: "number",
    defaultValue: requestBytesBounds.defaultValue,
    min: requestBytesBounds.min,
    max: requestBytesBounds.max,
    docs:
      "The largest message of a proxy, in bytes: four times its max_request_headers_kb. What is " +
      "larger is refused.",
  },
  logLevel: {
    kind: "text",
    defaultValue: "info",
    pattern: "^(trace|debug|info|warn|error|fatal)$",
    docs: "The least severe lines that are written.",
  },
  prometheusUrl: {
    kind: "text",
    defaultValue: "",
    pattern: "^(https?://[-A-Za-z0-9._:/]+)?$",
    docs: "The Prometheus that is asked where a policy's `prometheus` names no `server`.",
  },
  extraEnv: {
    kind: "list",
    defaultValue: [],
    docs: 'More settings, such as [{name: LIMIT_RESPONSE_HEADERS_ENABLED, value: "true"}].',
  },
  podAnnotations: { kind: "map", defaultValue: {}, docs: "More annotations of the pods." },
  nodeSelector: { kind: "map", defaultValue: {}, docs: "Labels of the nodes that may have pods." },
  tolerations: { kind: "list", defaultValue: [], docs: "Taints of nodes that do not matter." },
  affinity: { kind: "map", defaultValue: {}, docs: "Where pods would rather be." },
  priorityClassName: {
    kind: "text",
    defaultValue: "",
    pattern: "^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$",
    docs: "How important the pods are to the scheduler.",
  },
  "networkPolicy.enabled": {
    kind: "switch",
    defaultValue: true,
    docs: "Whether only proxies, the monitoring, Redis and DNS are let in and out.",
  },
  "networkPolicy.clientLabels": {
    kind: "texts",
    defaultValue: { "headgate.dev/client": "true" },
    docs: "Labels of the namespaces whose proxies may ask.",
  },
  "networkPolicy.monitoringLabels": {
    kind: "texts",
    defaultValue: { "kubernetes.io/metadata.name": "monitoring" },
    docs: "Labels of the namespaces that may scrape.",
  },
  "networkPolicy.dnsNamespaceLabels": {
    kind: "texts",
    defaultValue: { "kubernetes.io/metadata.name": "kube-system" },
    docs: "Labels of the namespace that DNS is in.",
  },
  "networkPolicy.dnsPodLabels": {
    kind: "texts",
    defaultValue: { "k8s-app": "kube-dns" },
    docs: "Labels of its pods.",
  },
  "networkPolicy.extraEgress": {
    kind: "list",
    defaultValue: [],
    docs: "More rules of egress: a Redis outside the cluster, sources of signals, a collector.",
  },
  "serviceMonitor.enabled": {
    kind: "switch",
    defaultValue: false,
    docs: "Whether the Prometheus operator is told to scrape; its CRDs must be there.",
  },
  "serviceMonitor.interval": {
    kind: "text",
    defaultValue: "15s",
    pattern: "^[0-9]+(ms|s|m)$",
    docs: "How often it does.",
  },
  "serviceMonitor.labels": {
    kind: "texts",
    defaultValue: {},
    docs: "Labels by which it finds the ServiceMonitor.",
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
