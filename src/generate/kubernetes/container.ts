import { noted, type Tree, type TreeMap } from "../base/document.js";
import type { ValueSource } from "./value-source.js";

/** Port of health checks for the kubelet, and of metrics for monitoring. */
export const monitoringPort = 8_080;

/** Port of `POST /json`, only for access from inside the pod. */
const localHttpPort = 8_083;

/** Ports that decisions and control cannot use. */
export const podPorts: readonly number[] = [monitoringPort, localHttpPort];

/** Mount paths in the pods. */
const mountPaths = {
  policy: "/etc/headgate/policy",
  redis: "/etc/headgate/redis",
  tls: "/etc/headgate/tls",
  waitingRooms: "/etc/headgate/waiting-rooms",
} as const;

/** Returns the container of a pod. */
export function containerOf(source: ValueSource): TreeMap {
  return {
    name: "headgate",
    image: imageOf(source),
    imagePullPolicy: source.text("image.pullPolicy"),
    args: ["serve"],
    ports: [
      { name: "grpc", containerPort: source.number("ports.grpc") },
      { name: "monitoring", containerPort: monitoringPort },
      ...source.listIf({ name: "controlPort.enabled" }, [
        { name: "control", containerPort: source.number("ports.control") },
      ]),
    ],
    env: environment(source),
    startupProbe: probe("/readyz", { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 60 }),
    readinessProbe: noted(
      "503 only while stopping, or while there is no policy. Without Redis it " +
        "reports `degraded` with 200, because an outage of Redis must not remove all " +
        "pods. They answer with on_store_failure.",
      probe("/readyz", { periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 2 }),
    ),
    livenessProbe: probe("/livez", { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 }),
    resources: {
      requests: { cpu: source.text("cpu"), memory: source.half("memoryMi", "@Mi") },
      limits: noted(
        "No CPU limit by default: a throttled answer arrives after Envoy's 20 ms " +
          "and is useless.",
        {
          memory: source.text("memoryMi", "@Mi"),
          ...source.mapIf({ name: "cpuLimit" }, { cpu: source.text("cpuLimit") }),
          ...source.mapIf(
            { name: "ephemeralStorage" },
            { "ephemeral-storage": source.text("ephemeralStorage") },
          ),
        },
      ),
    },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: [
      noted("The whole directory: with `subPath`, edits would never arrive.", {
        name: "policy",
        mountPath: mountPaths.policy,
        readOnly: true,
      }),
      ...source.listIf({ name: "redis.enabled" }, [
        { name: "redis", mountPath: mountPaths.redis, readOnly: true },
      ]),
      ...source.listIf({ name: "tls.enabled" }, [
        { name: "tls", mountPath: mountPaths.tls, readOnly: true },
      ]),
      ...source.listIf({ name: "waitingRooms.secretName" }, [
        { name: "waiting-rooms", mountPath: mountPaths.waitingRooms, readOnly: true },
      ]),
    ],
  };
}

/** Returns the volumes of the container. */
export function volumesOf(source: ValueSource): readonly Tree[] {
  // 0440: readable by the pod's own group (fsGroup).
  const defaultMode = 0o440;
  return [
    { name: "policy", configMap: { name: source.text("name", "@-policy") } },
    ...source.listIf({ name: "redis.enabled" }, [
      { name: "redis", secret: { secretName: source.text("redis.secretName"), defaultMode } },
    ]),
    ...source.listIf({ name: "tls.enabled" }, [
      { name: "tls", secret: { secretName: source.text("tls.secretName"), defaultMode } },
    ]),
    ...source.listIf({ name: "waitingRooms.secretName" }, [
      {
        name: "waiting-rooms",
        secret: { secretName: source.text("waitingRooms.secretName"), defaultMode },
      },
    ]),
  ];
}

function imageOf(source: ValueSource): Tree {
  return source.either({ name: "image.digest" }, [
    source.joined("@\\@@", ["image.repository", "image.digest"]),
    source.joined("@:@", ["image.repository", "image.tag"]),
  ]);
}

function probe(path: string, times: TreeMap): TreeMap {
  return { httpGet: { path, port: "monitoring" }, ...times };
}

/** Returns the settings, which `headgate serve --help` explains. */
function environment(source: ValueSource): readonly Tree[] {
  return [
    noted(
      "The directory: Kubernetes swaps all files of a ConfigMap together through a " +
        "symbolic link in it.",
      variable("HEADGATE_POLICY", mountPaths.policy),
    ),
    variable("GRPC_PORT", source.text("ports.grpc")),
    variable("HEADGATE_MONITORING_ADDR", `:${monitoringPort}`),
    noted(
      "`POST /json` has no authentication: use it only through `kubectl port-forward`.",
      variable("HOST", "127.0.0.1"),
    ),
    variable("PORT", String(localHttpPort)),
    ...source.listIf({ name: "controlPort.enabled" }, [
      variable("HEADGATE_CONTROL_ADDR", source.text("ports.control", ":@")),
    ]),
    ...source.listIf({ name: "controlPort.enabled", isNot: true }, [
      variable("HEADGATE_CONTROL_ADDR", ""),
    ]),
    ...stores(source),
    ...source.listIf({ name: "tls.enabled" }, [
      variable("GRPC_SERVER_USE_TLS", "true"),
      variable("GRPC_SERVER_TLS_CERT", `${mountPaths.tls}/tls.crt`),
      variable("GRPC_SERVER_TLS_KEY", `${mountPaths.tls}/tls.key`),
      ...source.listIf({ name: "tls.clientCertificates" }, [
        variable("GRPC_CLIENT_TLS_CACERT", `${mountPaths.tls}/ca.crt`),
        variable("HEADGATE_REQUIRE_CLIENT_CERTIFICATES", "true"),
      ]),
    ]),
    ...source.listIf({ name: "waitingRooms.secretName" }, [
      variable("HEADGATE_WAITING_ROOM_KEYS_FILE", `${mountPaths.waitingRooms}/keys`),
    ]),
    noted(
      "The minimum number of replicas. Without Redis, each pod enforces its share.",
      variable("HEADGATE_REPLICAS", source.text("replicas.min")),
    ),
    noted(
      "A cluster IP selects a pod for each connection. Old connections must end so " +
        "that new pods get their share.",
      variable("GRPC_MAX_CONNECTION_AGE", source.text("connectionAge")),
    ),
    noted(
      "Envoys before 1.40, and those of Istio and Envoy Gateway, do not send " +
        "retry-after to callers; later ones keep the header that is set here.",
      variable("HEADGATE_RETRY_AFTER_HEADER", "true"),
    ),
    variable("HEADGATE_REQUEST_BYTES_MAX", source.text("requestBytesMax")),
    variable("HEADGATE_DRAIN_DELAY_MS", source.text("drain.delayMs")),
    variable("HEADGATE_DRAIN_GRACE_MS", source.text("drain.graceMs")),
    variable("HEADGATE_BUDGET_LEASE_MS", source.text("budgetLeaseMs")),
    variable("LOG_FORMAT", "json"),
    variable("LOG_LEVEL", source.text("logLevel")),
    noted(
      "Half of the memory limit: tables and buffers are outside the JavaScript " +
        "heap. A process near its heap limit logs that and degrades; a process that " +
        "is killed logs nothing.",
      variable("NODE_OPTIONS", source.half("memoryMi", "--max-old-space-size=@")),
    ),
    ...source.listIf({ name: "prometheusUrl" }, [
      variable("HEADGATE_PROMETHEUS_URL", source.text("prometheusUrl")),
    ]),
    ...source.itemsOf("extraEnv"),
  ];
}

function stores(source: ValueSource): readonly Tree[] {
  return [
    ...source.listIf({ name: "redis.enabled" }, [
      variable("REDIS_URL_FILE", `${mountPaths.redis}/url`),
      variable("REDIS_AUTH_FILE", `${mountPaths.redis}/auth`),
    ]),
    ...source.listIf({ name: "region.name" }, [
      variable("HEADGATE_REGION", source.text("region.name")),
      variable("HEADGATE_REGION_STORES_FILE", `${mountPaths.redis}/regions`),
    ]),
  ];
}

function variable(name: string, value: Tree): TreeMap {
  return { name, value };
}
