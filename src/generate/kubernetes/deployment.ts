import { noted, type Tree, type TreeMap } from "../base/document.js";
import { containerOf, monitoringPort, volumesOf } from "./container.js";
import { labelsOf, objectMetadata } from "./labels.js";
import type { ValueSource } from "./value-source.js";

/** Time that a pod has to end after its drain, in seconds. */
const graceMarginSeconds = 15;

/** User and group of the image, neither of which has any permissions. */
const userId = 65_532;

/** Returns the Deployment of the replicas. */
export function deployment(source: ValueSource): TreeMap {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: objectMetadata(source),
    spec: {
      // With an autoscaler, `replicas` is not set: to apply it would undo the autoscaler's choice.
      ...source.mapIf(
        { name: "autoscaling.enabled", isNot: true },
        { replicas: source.number("replicas.min") },
      ),
      selector: { matchLabels: labelsOf(source) },
      strategy: noted("A new pod is ready before an old one stops.", {
        rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
      }),
      template: {
        metadata: {
          labels: labelsOf(source),
          annotations: {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": String(monitoringPort),
            "prometheus.io/path": "/metrics",
            ...source.entriesOf("podAnnotations"),
          },
        },
        spec: podOf(source),
      },
    },
  };
}

function podOf(source: ValueSource): TreeMap {
  return {
    serviceAccountName: source.text("name"),
    automountServiceAccountToken: false,
    enableServiceLinks: noted(
      "Service environment variables are not needed; the container gets its settings below.",
      false,
    ),
    ...source.mapIf(
      { name: "imagePullSecrets" },
      {
        imagePullSecrets: source.collection("imagePullSecrets"),
      },
    ),
    ...source.mapIf(
      { name: "priorityClassName" },
      {
        priorityClassName: source.text("priorityClassName"),
      },
    ),
    terminationGracePeriodSeconds: noted(
      "At SIGTERM Headgate reports NOT_SERVING and keeps answering for " +
        "HEADGATE_DRAIN_DELAY_MS while endpoints and health checks notice. Then it " +
        "finishes calls in flight for at most HEADGATE_DRAIN_GRACE_MS. So no preStop " +
        `sleep is needed. This period is both of them plus ${graceMarginSeconds} s.`,
      source.seconds(["drain.delayMs", "drain.graceMs"], graceMarginSeconds),
    ),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: userId,
      runAsGroup: userId,
      fsGroup: userId,
      seccompProfile: { type: "RuntimeDefault" },
    },
    topologySpreadConstraints: noted(
      "Spread if possible; a pod in the wrong place is better than none.",
      ["topology.kubernetes.io/zone", "kubernetes.io/hostname"].map((key) => spread(source, key)),
    ),
    ...placement(source),
    containers: [containerOf(source)],
    volumes: volumesOf(source),
  };
}

function spread(source: ValueSource, topologyKey: string): Tree {
  return {
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: "ScheduleAnyway",
    labelSelector: { matchLabels: labelsOf(source) },
  };
}

/** Returns where an installation places its pods. */
function placement(source: ValueSource): TreeMap {
  const names = ["nodeSelector", "tolerations", "affinity"] as const;
  const maps = names.map((name) => source.mapIf({ name }, { [name]: source.collection(name) }));
  return Object.assign({}, ...maps);
}
