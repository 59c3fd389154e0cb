import { keysOf } from "../../core/base/key-of.js";
import { requestBytesBounds } from "../../policy/cel/request-bytes.js";
import type { Tree, TreeMap } from "../base/document.js";

/** The type of one value of an installation. */
export type ValueRow = {
  /** One or two sentences, for the comment and the schema. */
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
  /** A value that only Kubernetes validates. */
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

/** Both bounds are inclusive. */
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
 * All values in which installations differ: parameters of the plain manifests, and values of the
 * chart. Names are paths: `image.tag` is `tag` in the map `image`.
 */
const valueRows = {
  name: text("headgate", dnsLabel, "The name of all objects. Proxies find Headgate by it."),
  "image.repository": text(
    "headgate",
    "^[a-z0-9][-a-zA-Z0-9._/:]{0,254}$",
    "Your image, without its tag.",
  ),
  "image.tag": text(
    "0.1.0",
    "^[A-Za-z0-9_][-A-Za-z0-9._]{0,127}$",
    "A version instead of `latest`, so that a rollback works.",
  ),
  "image.digest": text(
    "",
    "^(sha256:[0-9a-f]{64})?$",
    "The digest, such as sha256:..., instead of the tag: it pins exactly the image " +
      "that you pushed.",
  ),
  "image.pullPolicy": text(
    "IfNotPresent",
    "^(Always|IfNotPresent|Never)$",
    "When the image is pulled.",
  ),
  imagePullSecrets: list([], "Secrets for the registry, such as [{name: registry}]."),
  "replicas.min": number(
    2,
    [1, 1_000],
    "Minimum number of replicas. Without Redis, each enforces its share.",
  ),
  "replicas.max": number(8, [1, 1_000], "Maximum number of replicas."),
  "replicas.cpuPercent": number(
    70,
    [10, 100],
    "CPU usage, in percent of the request, at which replicas are added.",
  ),
  "autoscaling.enabled": toggle(
    true,
    "Whether the number of replicas follows the load. If false: always replicas.min.",
  ),
  "redis.enabled": toggle(
    true,
    "Whether replicas share their counts in a Redis. If false, each counts on its own.",
  ),
  "redis.secretName": text(
    "headgate-redis",
    objectName,
    "The Secret with `url` and `auth` (`user:password`) of that Redis.",
  ),
  "redis.port": number(6_379, [1, portMax], "The port of the Redis pods, for the network policy."),
  "redis.podLabels": texts(
    { "app.kubernetes.io/name": "redis" },
    "The labels of the Redis pods, in any namespace, for the network policy.",
  ),
  "region.name": text(
    "",
    "^([a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?)?$",
    "The region of this installation, for limits with `spread: global`. The Secret of Redis then " +
      "needs `regions`: the Redis of every region, one `name=url` in each line. If empty, there " +
      "are no regions.",
  ),
  "waitingRooms.secretName": text(
    "",
    "^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$",
    "The Secret with `keys`, which sign the tickets of waiting rooms. If empty, a key in the " +
      "store does.",
  ),
  "ports.grpc": number(8_081, [1, portMax], "The decision port."),
  "ports.control": number(
    18_000,
    [1, portMax],
    "The control port: Envoys get their shares and report their load here.",
  ),
  "controlPort.enabled": toggle(
    true,
    "Whether the control port is open. A policy without services does not need it.",
  ),
  "tls.enabled": toggle(
    true,
    "Whether both ports use TLS. If false, traffic is readable and anyone with " +
      "access can act as a proxy: request decisions, report usage and refund hits. A " +
      "mesh must prevent both.",
  ),
  "tls.secretName": text(
    "headgate-tls",
    objectName,
    "The Secret with `tls.crt`, `tls.key` and `ca.crt`, in the form that cert-manager writes.",
  ),
  "tls.clientCertificates": toggle(
    true,
    "Whether proxies need a certificate signed by a CA in `ca.crt`. If false, " +
      "anyone who reaches the ports can act as a proxy: request decisions, report " +
      "usage and refund hits.",
  ),
  "tls.serverName": text(
    "",
    "^([-A-Za-z0-9.]{1,253})?$",
    "An additional name in the certificate that proxies expect, besides those of the Services.",
  ),
  "certManager.enabled": toggle(
    false,
    "Whether cert-manager creates the Secret `tls.secretName`. Install its CRDs first.",
  ),
  "certManager.issuer": map(
    { name: "headgate-ca", kind: "Issuer" },
    "The issuer that signs the certificates of Headgate and of the proxies. Every " +
      "client of its CA is accepted.",
  ),
  connectionAge: text(
    "30m",
    "^([0-9]+(s|m|h))+$",
    "Age at which proxies are asked to reconnect. A cluster IP selects a pod for " +
      "each connection, so this is how new pods get their share.",
  ),
  "drain.delayMs": number(
    5_000,
    [0, 600_000],
    "How long calls are still accepted after SIGTERM, while endpoints and health checks notice.",
  ),
  "drain.graceMs": number(10_000, [0, 600_000], "How long calls in flight may then take."),
  budgetLeaseMs: number(
    30_000,
    [600, 600_000],
    "How long Redis keeps what a replica has reserved of budgets after its last sign of life.",
  ),
  cpu: text("500m", "^([0-9]+m|[0-9]+(\\.[0-9]+)?)$", "The CPU request."),
  cpuLimit: text(
    "",
    "^([0-9]+m|[0-9]+(\\.[0-9]+)?)?$",
    "The CPU limit. None by default, because a throttled answer arrives too late.",
  ),
  ephemeralStorage: text(
    "",
    "^([0-9]+[KMG]i)?$",
    "The ephemeral storage limit, such as 64Mi. Only logs are written.",
  ),
  memoryMi: number(
    512,
    [256, 65_536],
    "The memory limit, in MiB. Half of it is requested, and is the maximum " +
      "JavaScript heap. The rest is for tables, buffers and the program.",
  ),
  requestBytesMax: number(
    requestBytesBounds.defaultValue,
    [requestBytesBounds.min, requestBytesBounds.max],
    "The largest message of a proxy, in bytes: four times its " +
      "max_request_headers_kb. Larger messages are refused.",
  ),
  logLevel: text(
    "info",
    "^(trace|debug|info|warn|error|fatal)$",
    "The minimum severity of log lines.",
  ),
  prometheusUrl: text(
    "",
    "^(https?://[-A-Za-z0-9._:/]+)?$",
    "The URL of Prometheus for a policy whose `prometheus` names no `server`.",
  ),
  extraEnv: list(
    [],
    'Additional settings, such as [{name: LIMIT_RESPONSE_HEADERS_ENABLED, value: "true"}].',
  ),
  podAnnotations: map({}, "Additional annotations of the pods."),
  nodeSelector: map({}, "Labels of the nodes that may run pods."),
  tolerations: list([], "Tolerations of the pods."),
  affinity: map({}, "Affinity of the pods."),
  priorityClassName: text(
    "",
    "^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$",
    "The priority class of the pods.",
  ),
  "networkPolicy.enabled": toggle(
    true,
    "Whether traffic is restricted to proxies, monitoring, Redis and DNS.",
  ),
  "networkPolicy.clientLabels": texts(
    { "headgate.dev/client": "true" },
    "Labels of the namespaces whose proxies may call Headgate.",
  ),
  "networkPolicy.monitoringLabels": texts(
    { "kubernetes.io/metadata.name": "monitoring" },
    "Labels of the namespaces that may scrape.",
  ),
  "networkPolicy.dnsNamespaceLabels": texts(
    { "kubernetes.io/metadata.name": "kube-system" },
    "Labels of the namespace of DNS.",
  ),
  "networkPolicy.dnsPodLabels": texts({ "k8s-app": "kube-dns" }, "Labels of the DNS pods."),
  "networkPolicy.extraEgress": list(
    [],
    "Additional egress rules: a Redis outside the cluster or of another region, sources of " +
      "signals, a collector.",
  ),
  "serviceMonitor.enabled": toggle(
    false,
    "Whether to create a ServiceMonitor for the Prometheus operator. Install its CRDs first.",
  ),
  "serviceMonitor.interval": text("15s", "^[0-9]+(ms|s|m)$", "The scrape interval."),
  "serviceMonitor.labels": texts({}, "Labels by which the operator finds the ServiceMonitor."),
  policy: texts({}, "The policy: texts by file name. An edit is active without a restart."),
} as const satisfies Readonly<Record<string, ValueRow>>;

/** Name of a row. */
export type ValueName = keyof typeof valueRows;

/** Names of the rows of one kind. */
export type ValueNameOf<Kind extends ValueRow["kind"]> = {
  [Name in ValueName]: (typeof valueRows)[Name]["kind"] extends Kind ? Name : never;
}[ValueName];

/** All names, in the order in which people read them. */
export const valueNames: readonly ValueName[] = keysOf(valueRows);

/** Returns a row if its kind does not matter. */
export function valueRow(name: ValueName): ValueRow {
  return valueRows[name];
}
