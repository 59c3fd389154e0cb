import { plainShape as shape } from "../text/shapes.js";

/** `circuitBreakers` of a service. */
export const circuitBreakersShape = shape("circuitBreakers", [
  "maxConnections",
  "maxPendingRequests",
  "maxRequests",
  "maxRetries",
  "retryBudget",
  "perEndpoint",
]);

/** `circuitBreakers.perEndpoint`. */
export const perEndpointShape = shape("a perEndpoint", ["maxConnections"]);

/** `circuitBreakers.retryBudget`. */
export const retryBudgetShape = shape("a retryBudget", ["percent", "minRetries"]);

/** `outlierDetection` of a service. */
export const outlierDetectionShape = shape("an outlierDetection", [
  "consecutive5xx",
  "consecutiveGatewayFailure",
  "interval",
  "baseEjectionTime",
  "maxEjectionTime",
  "maxEjectionPercent",
  "successRate",
  "failurePercentage",
  "consecutiveLocalOriginFailure",
]);

/** `outlierDetection.failurePercentage`. */
export const failurePercentageShape = shape("a failurePercentage", [
  "threshold",
  "minHosts",
  "minRequests",
]);

/** `healthChecks` of a service. */
export const healthChecksShape = shape("healthChecks", [
  "http",
  "grpc",
  "timeout",
  "interval",
  "unhealthyThreshold",
  "healthyThreshold",
]);

/** `healthChecks.http`. */
export const httpHealthShape = shape("a check by HTTP", ["path", "host", "expectedStatuses"]);

/** `healthChecks.grpc`. */
export const grpcHealthShape = shape("a check by gRPC", ["serviceName"]);

/** `loadBalancing` of a service. */
export const loadBalancingShape = shape("a loadBalancing", [
  "healthyPanicThreshold",
  "consistentHash",
  "slowStart",
  "zoneAware",
]);

/** `loadBalancing.zoneAware`. */
export const zoneAwareShape = shape("a zoneAware", ["minClusterSize"]);

/** `loadBalancing.consistentHash`. */
export const consistentHashShape = shape("a consistentHash", [
  "header",
  "cookie",
  "queryParameter",
  "sourceIp",
]);

/** `loadBalancing.consistentHash.cookie`. */
export const hashCookieShape = shape("a cookie", ["name", "ttl"]);

/** `loadBalancing.slowStart`. */
export const slowStartShape = shape("a slowStart", ["window", "minWeightPercent"]);

/** `outlierDetection.successRate`. */
export const successRateShape = shape("a successRate", ["minHosts", "minRequests", "deviations"]);

/** `retries` of a service. */
export const retriesShape = shape("retries", [
  "numRetries",
  "retryOn",
  "retriableStatusCodes",
  "perTryTimeout",
  "perTryIdleTimeout",
  "hedging",
  "backOff",
  "maxRetryAfter",
]);

/** `retries.backOff`. */
export const backOffShape = shape("a backOff", ["base", "max"]);

/** `timeouts` of a service. */
export const timeoutsShape = shape("timeouts", [
  "request",
  "connect",
  "idle",
  "maxStreamDuration",
  "maxConnectionDuration",
]);

/** `localRateLimit` of a service. */
export const localRateLimitShape = shape("a localRateLimit", ["requests", "per", "burst", "when"]);

/** `adaptiveConcurrency` of a service, and of `proxies`. */
export const adaptiveConcurrencyShape = shape("an adaptiveConcurrency", [
  "maxLimit",
  "minLimit",
  "percentile",
  "updateInterval",
  "minRtt",
]);

/** `adaptiveConcurrency.minRtt`. */
export const minRttShape = shape("a minRtt", [
  "fixed",
  "interval",
  "requestCount",
  "jitterPercent",
  "bufferPercent",
]);

/** `admissionControl` of a service, and of `proxies`. */
export const admissionControlShape = shape("an admissionControl", [
  "aggression",
  "successRateThreshold",
  "samplingWindow",
  "minRequestsPerSecond",
  "maxRejectPercent",
  "when",
]);

/** `upstream.tls` of a service. */
export const upstreamTlsShape = shape("tls of an upstream", [
  "caFile",
  "certFile",
  "keyFile",
  "secret",
  "mutual",
  "serverName",
  "subjectAltNames",
]);
