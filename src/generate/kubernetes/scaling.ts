import { noted, type TreeMap } from "../base/document.js";
import { labelsOf, metadataOf } from "./labels.js";
import type { ValueSource } from "./value-source.js";

/** As many replicas as the load needs. */
export function autoscaler(source: ValueSource): TreeMap {
  return {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: metadataOf(source),
    spec: {
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: source.text("name") },
      minReplicas: noted(
        "HEADGATE_REPLICAS of the Deployment is this number.",
        source.number("replicas.min"),
      ),
      maxReplicas: source.number("replicas.max"),
      metrics: [
        {
          type: "Resource",
          resource: {
            name: "cpu",
            target: noted("Of the request, so that there is room while a new pod starts.", {
              type: "Utilization",
              averageUtilization: source.number("replicas.cpuPercent"),
            }),
          },
        },
      ],
      behavior: {
        scaleDown: {
          stabilizationWindowSeconds: noted("Every pod that goes makes proxies reconnect.", 300),
          policies: [{ type: "Pods", value: 1, periodSeconds: 60 }],
        },
      },
    },
  };
}

/** How many may be taken away on purpose. */
export function disruptionBudget(source: ValueSource): TreeMap {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: metadataOf(source),
    spec: {
      maxUnavailable: noted("One at a time, however many there are.", 1),
      selector: { matchLabels: labelsOf(source) },
    },
  };
}
