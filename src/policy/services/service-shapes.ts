import { refusalCauses } from "../../core/settings/admission-settings.js";
import { plainShape as shape } from "../text/shapes.js";

/** An item of `services`. */
export const serviceShape = shape("a service", [
  "name",
  "namespace",
  "hosts",
  "upstream",
  "clusters",
  "workload",
  "direction",
  "rateLimit",
  "priority",
  "admission",
  "concurrency",
  "circuitBreakers",
  "outlierDetection",
  "healthChecks",
  "loadBalancing",
  "retries",
  "timeouts",
  "upgrades",
  "localRateLimit",
  "adaptiveConcurrency",
  "admissionControl",
]);

/** `workload` of a service. */
export const workloadShape = shape("a workload", ["labels"]);

/** `upstream` of a service. */
export const upstreamShape = shape("an upstream", ["address", "port", "tls", "protocol"]);

/** `rateLimit` of a service. */
export const serviceRateLimitShape = shape("a service's rateLimit", [
  "domain",
  "descriptors",
  "inExtProc",
  "dryRun",
]);

/** An item of a service's `descriptors` that is more than a list of parts. */
export const serviceDescriptorShape = shape("a service's descriptor", [
  "entries",
  "hits",
  "refund",
  "when",
]);

/** `hits` of a service's descriptor, where Envoy finds the number. */
export const hitsShape = shape("hits", ["format"]);

/** What a part is made from: one of these names, beside `as` and what belongs to it. */
export const partSources = [
  "header",
  "query",
  "headerMatch",
  "queryMatch",
  "metadata",
  "cel",
  "maskedRemoteAddress",
] as const;

/** A part of a service's descriptor that is a map. */
export const descriptorPartShape = shape("a part of a descriptor", [
  ...partSources,
  "value",
  "expectMatch",
  "as",
]);

/** An item of `headerMatch` and `queryMatch`. */
export const textMatchShape = shape("a match", [
  "name",
  "exact",
  "prefix",
  "suffix",
  "contains",
  "regex",
  "present",
]);

/** `metadata` of a part. */
export const metadataPartShape = shape("metadata of a part", [
  "source",
  "namespace",
  "path",
  "default",
]);

/** `maskedRemoteAddress` of a part. */
export const maskShape = shape("a maskedRemoteAddress", ["v4", "v6"]);

/** `priority` of a service. */
export const priorityShape = shape("a priority", ["from", "rules", "bypassPaths", "authPaths"]);

/** `priority.from`. */
export const priorityFromShape = shape("priority.from", ["header", "default", "trust"]);

/** `priority.from.trust`. */
export const trustShape = shape("trust", ["anyone", "sources", "principals"]);

/** An item of `priority.rules`. */
export const priorityRuleShape = shape("a rule of priority", ["when", "is"]);

/** `admission` of a service. */
export const admissionShape = shape("an admission", [
  "maxInFlight",
  "maxInFlightPer",
  "shedAt",
  "deadline",
  "queue",
  "estimatedWait",
  "gate",
  "throttle",
  "load",
  "reject",
  "caller",
  "lateAfter",
  "sampleRatio",
  "ownOverload",
  "dryRun",
]);

/** The blocks of `admission`. */
export const admissionBlockShapes = {
  maxInFlightPer: shape("maxInFlightPer", ["per", "max", "keysMax"]),
  shedAt: shape("shedAt", ["low", "normal", "high", "critical", "dryRun"]),
  deadline: shape("a deadline", ["minRemaining", "margin", "header", "dryRun"]),
  queue: shape("a queue", ["size", "maxWait", "order", "codel", "dryRun"]),
  codel: shape("codel", ["target", "interval"]),
  estimatedWait: shape("an estimatedWait", ["max", "sigmoid", "dryRun"]),
  sigmoid: shape("a sigmoid", ["midpoint", "slope"]),
  gate: shape("a gate", ["openBelow", "closeAbove", "passAtClose", "dryRun"]),
  throttle: shape("a throttle", ["k", "per", "memory", "dryRun"]),
  load: shape("a load", [
    "orcaCpu",
    "orcaMemory",
    "latency",
    "errorRatio",
    "queueWait",
    "signal",
    "combine",
    "dryRun",
  ]),
  reject: shape("a reject", ["retryAfter", "status", "tellRule"]),
  retryAfter: shape("a retryAfter", ["min", "jitter"]),
} as const;

/** `reject.status`: the causes of refusals. */
export const statusShape = shape("status", refusalCauses);

/** A threshold of `shedAt` that is a map. */
export const thresholdShape = shape("a threshold", ["soft", "hard"]);

/** What names a header where a word may stand too. */
export const headerChoiceShape = shape("a caller", ["header"]);

/** `concurrency` of a service. */
export const concurrencyShape = shape("a concurrency", [
  "law",
  "limits",
  "per",
  "sources",
  "feedback",
  "aimd",
  "vegas",
  "gradient",
  "latencyShed",
  "signal",
]);

/** `concurrency.limits`. */
export const limitsShape = shape("limits", ["initial", "min", "max"]);

/** `concurrency.per`. */
export const concurrencyKeyShape = shape("per", ["header", "names", "keysMax"]);

/** What each concurrency law may be told. */
export const lawShapes = {
  aimd: shape("aimd", ["increase", "decrease"]),
  vegas: shape("vegas", ["smoothing", "statistic"]),
  gradient: shape("gradient", ["rttTolerance", "smoothing", "baseline", "statistic"]),
  latencyShed: shape("latencyShed", ["threshold", "statistic", "window", "factor", "sustained"]),
  signal: shape("signal", [
    "preset",
    "prometheus",
    "server",
    "metrics",
    "select",
    "redis",
    "http",
    "pointer",
    "fixed",
    "by",
    "target",
    "critical",
    "smoothing",
    "pid",
    "thresholds",
    "every",
    "timeout",
    "staleAfter",
    "whenMissing",
  ]),
} as const;

/** `signal.pid`. */
export const pidShape = shape("a pid", ["kp", "ki", "kd"]);

/** An item of `signal.thresholds`. */
export const thresholdOfKeyShape = shape("a key's thresholds", ["name", "target", "critical"]);
