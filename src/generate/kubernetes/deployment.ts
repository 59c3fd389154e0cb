import { noted, type Tree, type TreeMap } from "../base/document.js";
import { containerOf, monitoringPort, volumesOf } from "./container.js";
import { labelsOf, objectMetadata } from "./labels.js";
import type { ValueSource } from "./value-source.js";

/** What a pod has beyond its drain to end in, in seconds. */
const graceMarginSeconds = 15;

/** The user and the group of the image; neither may do anything. */
const userId = 65_532;

/** The replicas. */
export function deployment(source: ValueSource): TreeMap {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: objectMetadata(source),
    spec: {
      // With an autoscaler there are none here: applying this would undo what it chose.
      ...source.mapIf(
        { name: "autoscaling.enabled", isNot: true },
        { replicas: source.number("replicas.min") },
      ),
      selector: { matchLabels: labelsOf(source) },
      strategy: noted("A new pod is ready before an old one goes.", {
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
      "Variables for every Service of the namespace; ours is told what it needs below.",
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
      "At SIGTERM Headgate says NOT_SERVING, answers on for HEADGATE_DRAIN_DELAY_MS while " +
        "endpoints and health checks notice, then finishes what is in flight for at most " +
        "HEADGATE_DRAIN_GRACE_MS. That is what a preStop sleep is for elsewhere, so there is " +
        `none; this is both of them and ${graceMarginSeconds} s.`,
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
      "Spread where it can be; a pod in the wrong place is better than none.",
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

/** Where an installation wants its pods. */
function placement(source: ValueSource): TreeMap {
  const names = ["nodeSelector", "tolerations", "affinity"] as const;
  const maps = names.map((name) => source.mapIf({ name }, { [name]: source.collection(name) }));
  return Object.assign({}, ...maps);
}
