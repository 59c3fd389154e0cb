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

type RowOf<Kind extends ValueRow["kind"]> = Extract<ValueRow, { readonly kind: Kind }>;

function text(defaultValue: string, pattern: string, docs: string): RowOf<"text"> {
  return { kind: "text", defaultValue, pattern, docs };
}

/** Both bounds are taken. */
function number(
  defaultValue: number,
  [min, max]: readonly [min: number, max: number],
  docs: string,
): RowOf<"number"> {
  return { kind: "number", defaultValue, min, max, docs };
}

function toggle(defaultValue: boolean, docs: string): RowOf<"switch"> {
  return { kind: "switch", defaultValue, docs };
}

function texts(defaultValue: RowOf<"texts">["defaultValue"], docs: string): RowOf<"texts"> {
  return { kind: "texts", defaultValue, docs };
}

function map(defaultValue: TreeMap, docs: string): RowOf<"map"> {
  return { kind: "map", defaultValue, docs };
}

function list(defaultValue: readonly Tree[], docs: string): RowOf<"list"> {
  return { kind: "list", defaultValue, docs };
}

/**
 * Everything that installations differ in: what plain manifests are made with, and the values of
 * the chart. The names are paths: `image.tag` is `tag` in the map `image`.
 */
const valueRows = {
  name: text("headgate", dnsLabel, "What all objects are called, and how proxies find them."),
  "image.repository": text(
    "headgate",
    "^[a-z0-9][-a-zA-Z0-9._/:]{0,254}$",
    "Where your image is, without its tag.",
  ),
  "image.tag": text(
    "0.1.0",
    "^[A-Za-z0-9_][-A-Za-z0-9._]{0,127}$",
    "A version and not `latest`, so that a rollback is one.",
  ),
  "image.digest": text(
    "",
    "^(sha256:[0-9a-f]{64})?$",
    "Its digest, such as sha256:..., in place of the tag: what runs is then what was pushed, " +
      "whatever the registry says of the tag.",
  ),
  "image.pullPolicy": text(
    "IfNotPresent",
    "^(Always|IfNotPresent|Never)$",
    "When the image is fetched.",
  ),
  imagePullSecrets: list([], "Secrets for the registry, such as [{name: registry}]."),
  "replicas.min": number(
    2,
    [1, 1_000],
    "Replicas that there are at least. Without Redis each of them answers with its share.",
  ),
  "replicas.max": number(8, [1, 1_000], "Replicas that there are at most."),
  "replicas.cpuPercent": number(
    70,
    [10, 100],
    "CPU in use, of what is requested, from which on there are more of them.",
  ),
  "autoscaling.enabled": toggle(
    true,
    "Whether their number follows the load. Off: replicas.min of them.",
  ),
  "redis.enabled": toggle(
    true,
    "Whether replicas share what they count in a Redis. Without it each counts for itself.",
  ),
  "redis.secretName": text(
    "headgate-redis",
    objectName,
    "The Secret with `url` and `auth` (`user:password`) of that Redis.",
  ),
  "redis.port": number(6_379, [1, portMax], "The port of its pods, for the network policy."),
  "redis.podLabels": texts(
    { "app.kubernetes.io/name": "redis" },
    "The labels of its pods, in any namespace, for the network policy.",
  ),
  "ports.grpc": number(8_081, [1, portMax], "Where proxies ask."),
  "ports.control": number(
    18_000,
    [1, portMax],
    "Where proxies get their shares, and tell what they do.",
  ),
  "controlPort.enabled": toggle(
    true,
    "Whether that port is open; a policy without services needs none.",
  ),
  "tls.enabled": toggle(
    true,
    "Whether both ports speak TLS. Off, whoever reaches them asks, reports and gives hits back " +
      "like a proxy, and what is said can be read on the way: a mesh has to see to both.",
  ),
  "tls.secretName": text(
    "headgate-tls",
    objectName,
    "The Secret with `tls.crt`, `tls.key` and `ca.crt`, as cert-manager makes it.",
  ),
  "tls.clientCertificates": toggle(
    true,
    "Whether proxies need a certificate that the authorities in `ca.crt` vouch for. Off, " +
      "whoever reaches the ports asks, reports and gives hits back like a proxy.",
  ),
  "tls.serverName": text(
    "",
    "^([-A-Za-z0-9.]{1,253})?$",
    "A name that proxies expect in the certificate, besides those of the Services.",
  ),
  "certManager.enabled": toggle(
    false,
    "Whether cert-manager makes the Secret `tls.secretName`; its CRDs must be there.",
  ),
  "certManager.issuer": map(
    { name: "headgate-ca", kind: "Issuer" },
    "The issuer that signs it, and the proxies' certificates: every client of its authority " +
      "is let in.",
  ),
  connectionAge: text(
    "30m",
    "^([0-9]+(s|m|h))+$",
    "Age at which proxies are asked to connect again. A cluster IP chooses a pod a connection, " +
      "so this is how new pods get their part.",
  ),
  "drain.delayMs": number(
    5_000,
    [0, 600_000],
    "How long calls are still taken after SIGTERM, while endpoints and health checks notice.",
  ),
  "drain.graceMs": number(10_000, [0, 600_000], "How long calls in flight may take after that."),
  cpu: text("500m", "^([0-9]+m|[0-9]+(\\.[0-9]+)?)$", "CPU that is requested."),
  cpuLimit: text(
    "",
    "^([0-9]+m|[0-9]+(\\.[0-9]+)?)?$",
    "The limit of CPU. By default there is none: a throttled answer comes too late.",
  ),
  ephemeralStorage: text(
    "",
    "^([0-9]+[KMG]i)?$",
    "The limit of the node's disk, such as 64Mi, for logs alone: nothing else is written.",
  ),
  memoryMi: number(
    512,
    [256, 65_536],
    "The limit of memory, in MiB. Half of it is requested and JavaScript's heap at most; the " +
      "rest is for tables, buffers and the program.",
  ),
  requestBytesMax: number(
    requestBytesBounds.defaultValue,
    [requestBytesBounds.min, requestBytesBounds.max],
    "The largest message of a proxy, in bytes: four times its max_request_headers_kb. What is " +
      "larger is refused.",
  ),
  logLevel: text(
    "info",
    "^(trace|debug|info|warn|error|fatal)$",
    "The least severe lines that are written.",
  ),
  prometheusUrl: text(
    "",
    "^(https?://[-A-Za-z0-9._:/]+)?$",
    "The Prometheus that is asked where a policy's `prometheus` names no `server`.",
  ),
  extraEnv: list(
    [],
    'More settings, such as [{name: LIMIT_RESPONSE_HEADERS_ENABLED, value: "true"}].',
  ),
  podAnnotations: map({}, "More annotations of the pods."),
  nodeSelector: map({}, "Labels of the nodes that may have pods."),
  tolerations: list([], "Taints of nodes that do not matter."),
  affinity: map({}, "Where pods would rather be."),
  priorityClassName: text(
    "",
    "^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$",
    "How important the pods are to the scheduler.",
  ),
  "networkPolicy.enabled": toggle(
    true,
    "Whether only proxies, the monitoring, Redis and DNS are let in and out.",
  ),
  "networkPolicy.clientLabels": texts(
    { "headgate.dev/client": "true" },
    "Labels of the namespaces whose proxies may ask.",
  ),
  "networkPolicy.monitoringLabels": texts(
    { "kubernetes.io/metadata.name": "monitoring" },
    "Labels of the namespaces that may scrape.",
  ),
  "networkPolicy.dnsNamespaceLabels": texts(
    { "kubernetes.io/metadata.name": "kube-system" },
    "Labels of the namespace that DNS is in.",
  ),
  "networkPolicy.dnsPodLabels": texts({ "k8s-app": "kube-dns" }, "Labels of its pods."),
  "networkPolicy.extraEgress": list(
    [],
    "More rules of egress: a Redis outside the cluster, sources of signals, a collector.",
  ),
  "serviceMonitor.enabled": toggle(
    false,
    "Whether the Prometheus operator is told to scrape; its CRDs must be there.",
  ),
  "serviceMonitor.interval": text("15s", "^[0-9]+(ms|s|m)$", "How often it does."),
  "serviceMonitor.labels": texts({}, "Labels by which it finds the ServiceMonitor."),
  policy: texts({}, "The policy: texts by file name. An edit is active without a restart."),
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
