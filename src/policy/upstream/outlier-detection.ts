import { duration, number, whole } from "../text/form.js";
import { field, inner, object } from "../text/object.js";
import { type DurationBounds, type NumberBounds, percentBounds } from "../text/quantities.js";
import { thresholdBounds } from "./circuit-breakers.js";

/** Maximum time of an ejection, and of an interval: a day. */
export const ejectionTimeMsMax = 86_400_000;

/** The bounds of `interval`, `baseEjectionTime` and `maxEjectionTime`. */
const ejectionTimeBounds: DurationBounds = { minMs: 1, maxMs: ejectionTimeMsMax };

/** Maximum number of standard deviations below the mean. Envoy counts them in thousandths. */
const deviationsMax = 1_000;

/** The bounds of `deviations`. */
const deviationsBounds: NumberBounds = { min: 0, max: deviationsMax, isMinExcluded: true };

/** Bounds of `threshold`: at 0, every host would be ejected. */
const failureBounds = { min: 1, max: 100 } as const;

const minHosts = field(
  whole(thresholdBounds),
  "The number of hosts with enough requests before any host is evaluated.",
  {
    larger: "looser",
    as: "hostsMin",
    default: 5,
  },
);

const minRequestsDocs = "Requests of a host in an interval before it is evaluated.";

const successRate = object(
  {
    title: "a successRate",
    docs: "Ejects hosts whose success rate is far below that of the others.",
  },
  {
    minHosts,
    minRequests: field(whole(thresholdBounds), minRequestsDocs, {
      larger: "looser",
      as: "requestsMin",
      default: 100,
    }),
    deviations: field(number(deviationsBounds), "Standard deviations below the mean.", {
      larger: "looser",
      default: 1.9,
    }),
  },
);

const failurePercentage = object(
  { title: "a failurePercentage", docs: "Ejects hosts with too many failures." },
  {
    threshold: field(whole(failureBounds), "Percent of failures in an interval.", {
      larger: "looser",
      as: "thresholdPercent",
      default: 85,
    }),
    minHosts,
    minRequests: field(whole(thresholdBounds), minRequestsDocs, {
      larger: "looser",
      as: "requestsMin",
      default: 50,
    }),
  },
);

const ejectionMsMaxDefault = 300_000;

/** `outlierDetection`. */
export const outlierDetection = object(
  { title: "an outlierDetection", docs: "Ejects failing hosts for some time." },
  {
    consecutive5xx: field(whole(thresholdBounds), "Consecutive 5xx responses that eject a host.", {
      larger: "looser",
      default: 5,
    }),
    consecutiveGatewayFailure: field(
      whole(thresholdBounds),
      "Consecutive 502, 503 or 504 responses that eject a host.",
      { larger: "looser", as: "consecutiveGatewayFailures", default: 5 },
    ),
    interval: field(duration(ejectionTimeBounds), "The interval between evaluations.", {
      larger: "different",
      as: "intervalMs",
      default: 10_000,
    }),
    baseEjectionTime: field(
      duration(ejectionTimeBounds),
      "The duration of the first ejection. Each further ejection is longer.",
      { larger: "stricter", as: "baseEjectionMs", default: 30_000 },
    ),
    maxEjectionTime: field(duration(ejectionTimeBounds), "The longest ejection.", {
      larger: "stricter",
      as: "ejectionMsMax",
      dependentDefault: ejectionMsMaxDefault,
    }),
    maxEjectionPercent: field(
      whole(percentBounds),
      "Percent of hosts that may be ejected at once.",
      { larger: "stricter", as: "ejectionPercentMax", default: 50 },
    ),
    successRate: field(inner(successRate), "Also ejects by success rate. Default: off."),
    failurePercentage: field(
      inner(failurePercentage),
      "Also ejects by failure percentage. Default: off.",
    ),
    consecutiveLocalOriginFailure: field(
      whole(thresholdBounds),
      "Consecutive failed connections and timeouts that eject a host. Default: " +
        "they count as 5xx responses.",
      { larger: "looser", as: "localOriginFailures" },
    ),
  },
  {
    data: (read) => ({
      ...read,
      ejectionMsMax: read.ejectionMsMax ?? Math.max(ejectionMsMaxDefault, read.baseEjectionMs),
    }),
    check(block, { ejectionMsMax, baseEjectionMs }) {
      if (ejectionMsMax >= baseEjectionMs) return;
      const message = "the longest ejection is shorter than the first one";
      block.refuseOrder(["maxEjectionTime"], message, "at least baseEjectionTime");
    },
  },
);

/** Ejection of hosts for some time. Source: envoy.config.cluster.v3.OutlierDetection. */
export type OutlierDetectionPolicy = typeof outlierDetection.defaults;

/** Ejection by failure percentage if the policy sets no details. */
export const defaultFailurePercentage = failurePercentage.defaults;
