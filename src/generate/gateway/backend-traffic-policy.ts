import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { defaultBlocks } from "../../policy/upstream/default-upstream.js";
import type { HealthCheckPolicy, HealthProbe } from "../../policy/upstream/health-checks.js";
import type { HashSource, LoadBalancingPolicy } from "../../policy/upstream/load-balancing.js";
import type { OutlierDetectionPolicy } from "../../policy/upstream/outlier-detection.js";
import type { RetryCondition } from "../../policy/upstream/retries.js";
import { specObject } from "../base/custom-object.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { requestsMaxOf } from "../envoy/cluster/requests-max.js";
import { servedMsMax } from "../envoy/http/usage.js";
import { envoyGatewayVersion, gatewayDuration, gatewayGroup, routePlace } from "./gateway-names.js";
import { hasGatewayFeature, reportOldGateway } from "./gateway-version.js";
import { globalRateLimit } from "./rate-limit-rules.js";

/**
 * Returns a service's breakers, outlier detection, timeouts, retries and limits, for its HTTPRoute.
 *
 * Source: Envoy Gateway, BackendTrafficPolicy.
 */
export function backendTrafficPolicy(service: ServicePolicy, context: EnvoyContext): TreeMap {
  const place = routePlace(service, context);
  return specObject({ apiVersion: envoyGatewayVersion, kind: "BackendTrafficPolicy" }, place, {
    targetRefs: [routeTarget(service, context)],
    circuitBreaker: circuitBreaker(service, context),
    loadBalancer: loadBalancer(service.loadBalancing),
    healthCheck: healthCheck(service, context),
    timeout: timeout(service, context),
    retry: retry(service, context),
    httpUpgrade: upgrades(service, context),
    rateLimit: globalRateLimit(service, context),
  });
}

/** By default, Envoy Gateway allows websocket. */
function upgrades({ name, upgrades: all }: ServicePolicy, { report }: EnvoyContext) {
  if (all.join() === defaultBlocks.upgrades.join()) return undefined;
  if (all.length === 0) {
    report({
      id: "HG359",
      spot: { service: name, path: ["upgrades"] },
      message: "Envoy Gateway allows websocket if no protocol is listed",
      hint: "leave upgrades out, or refuse requests with the upgrade header in your HTTPRoute",
    });
  }
  return all.map((type) => ({ type }));
}

/** Returns a reference to the HTTPRoute of a service. */
export function routeTarget(service: ServicePolicy, context: EnvoyContext): TreeMap {
  const { name } = routePlace(service, context);
  return { group: gatewayGroup, kind: "HTTPRoute", name };
}

function healthCheck(service: ServicePolicy, context: EnvoyContext): TreeMap | undefined {
  const { outlierDetection, healthChecks, loadBalancing } = service;
  const check: TreeMap = {
    active: healthChecks && active(healthChecks),
    passive: outlierDetection && passive(outlierDetection, service, context),
    panicThreshold: loadBalancing.panicThresholdPercent,
  };
  return Object.values(check).every((value) => value === undefined) ? undefined : check;
}

function active({ probe, ...times }: HealthCheckPolicy): TreeMap {
  return {
    timeout: gatewayDuration(times.timeoutMs),
    interval: gatewayDuration(times.intervalMs),
    initialJitter: times.initialJitterMs && gatewayDuration(times.initialJitterMs),
    unhealthyThreshold: times.unhealthyThreshold,
    healthyThreshold: times.healthyThreshold,
    ...activeProbe(probe),
  };
}

/** Otherwise Envoy rejects the cluster. The Service declares the protocol of its hosts. */
const grpcProbeNote = "Needs appProtocol kubernetes.io/h2c on the Service's port.";

function activeProbe(probe: HealthProbe): TreeMap {
  switch (probe.kind) {
    case "tcp":
      return { type: "TCP", tcp: payloads(probe) };
    case "grpc":
      return { type: noted(grpcProbeNote, "GRPC"), grpc: { service: probe.service } };
    case "http": {
      const { path, host, statuses } = probe;
      const method = probe.method === "GET" ? undefined : probe.method;
      return { type: "HTTP", http: { hostname: host, path, method, expectedStatuses: statuses } };
    }
  }
}

function payloads({ send, receive }: Extract<HealthProbe, { kind: "tcp" }>): TreeMap {
  const payload = (text: string | undefined): TreeMap | undefined =>
    text === undefined ? undefined : { type: "Text", text };
  return { send: payload(send), receive: payload(receive) };
}

/** Undefined: Envoy Gateway's default, the less busy of two hosts. */
function loadBalancer({ hash, slowStart, zoneAware }: LoadBalancingPolicy): TreeMap | undefined {
  if (hash !== undefined) return { type: "ConsistentHash", consistentHash: hashSource(hash) };
  if (slowStart === undefined && zoneAware === undefined) return undefined;
  return {
    type: "LeastRequest",
    slowStart: slowStart && { window: gatewayDuration(slowStart.windowMs) },
    zoneAware: zoneAware && { preferLocal: { minEndpointsThreshold: zoneAware.clusterSizeMin } },
  };
}

function hashSource(hash: HashSource): TreeMap {
  switch (hash.kind) {
    case "header":
      return { type: "Header", header: { name: hash.name } };
    case "query":
      return { type: "QueryParams", queryParams: [{ name: hash.name }] };
    case "cookie": {
      const cookie = { name: hash.name, ttl: gatewayDuration(hash.ttlMs) };
      return { type: "Cookie", cookie: { ...cookie, attributes: { Path: "/" } } };
    }
    case "sourceIp":
      return { type: "SourceIP" };
  }
}

function circuitBreaker(service: ServicePolicy, context: EnvoyContext): TreeMap {
  const { connectionsMax, pendingRequestsMax, retriesMax, hostConnectionsMax } =
    service.circuitBreakers;
  return {
    maxConnections: connectionsMax,
    maxPendingRequests: pendingRequestsMax,
    maxParallelRequests: requestsMaxOf(service, context),
    maxParallelRetries: retriesMax,
    retryBudget: retryBudget(service, context),
    perEndpoint: hostConnectionsMax && { maxConnections: hostConnectionsMax },
  };
}

/** Without retries, a budget has no effect. */
function retryBudget(service: ServicePolicy, context: EnvoyContext): TreeMap | undefined {
  const { circuitBreakers, retries, name } = service;
  const { retryBudget: budget } = circuitBreakers;
  if (budget === undefined || retries === undefined) return undefined;
  if (!hasGatewayFeature(context, "retryBudget")) {
    reportOldGateway(context, {
      service: name,
      path: ["circuitBreakers", "retryBudget"],
      feature: "retryBudget",
      what: "retry budgets",
      instead: "retryBudget: off, and bound concurrent retries with maxRetries",
    });
    return undefined;
  }
  return {
    percent: fraction(budget.percent),
    minRetryConcurrency: budget.retriesMin,
  };
}

/** Converts a percentage to a fraction of integers, to a thousandth of a percent. */
function fraction(percent: number): TreeMap {
  return Number.isInteger(percent)
    ? { numerator: percent, denominator: 100 }
    : { numerator: Math.round(percent * 1_000), denominator: 100_000 };
}

function passive(
  policy: OutlierDetectionPolicy,
  { name: service }: ServicePolicy,
  { report }: EnvoyContext,
): TreeMap {
  const defaultMax = Math.max(defaultBlocks.outlierDetection.ejectionMsMax, policy.baseEjectionMs);
  if (policy.successRate !== undefined || policy.ejectionMsMax !== defaultMax) {
    const name = policy.successRate === undefined ? "maxEjectionTime" : "successRate";
    report({
      id: "HG351",
      spot: { service, path: ["outlierDetection", name] },
      message: `Envoy Gateway's passive health checks do not support ${name}`,
      hint: "leave it out: consecutive failures are counted, and ejections last at most 300 s",
    });
  }
  return {
    consecutive5XxErrors: policy.consecutive5xx,
    consecutiveGatewayErrors: policy.consecutiveGatewayFailures,
    splitExternalLocalOriginErrors: policy.localOriginFailures === undefined ? undefined : true,
    consecutiveLocalOriginFailures: policy.localOriginFailures,
    failurePercentageThreshold: policy.failurePercentage?.thresholdPercent,
    interval: gatewayDuration(policy.intervalMs),
    baseEjectionTime: gatewayDuration(policy.baseEjectionMs),
    maxEjectionPercent: policy.ejectionPercentMax,
  };
}

function timeout(service: ServicePolicy, context: EnvoyContext): TreeMap {
  const { connectMs, idleMs, maxStreamMs, maxConnectionMs } = service.timeouts;
  const isIdleKnown = hasGatewayFeature(context, "streamIdleTimeout");
  if (idleMs !== undefined && !isIdleKnown) {
    reportOldGateway(context, {
      service: service.name,
      path: ["timeouts", "idle"],
      feature: "streamIdleTimeout",
      what: "idle timeouts of streams",
      instead: "leave timeouts.idle out; timeouts.request bounds the whole request",
    });
  }
  return {
    tcp: { connectTimeout: gatewayDuration(connectMs) },
    http: {
      requestTimeout: gatewayDuration(servedMsMax(service)),
      maxConnectionDuration: maxConnectionMs && gatewayDuration(maxConnectionMs),
      maxStreamDuration: maxStreamMs && gatewayDuration(maxStreamMs),
      streamIdleTimeout: idleMs === undefined || !isIdleKnown ? undefined : gatewayDuration(idleMs),
    },
  };
}

const triggers: Readonly<Record<Exclude<RetryCondition, "reset" | "rateLimited">, string>> = {
  connectFailure: "connect-failure",
  refusedStream: "refused-stream",
  gatewayError: "gateway-error",
  "5xx": "5xx",
  retriableStatus: "retriable-status-codes",
};

function retry(service: ServicePolicy, context: EnvoyContext): Tree | undefined {
  const { retries, name } = service;
  if (retries === undefined) return undefined;
  const { retriableStatusCodes: codes } = retries;
  const words = retries.on.flatMap((condition) => {
    if (condition === "reset") {
      return hasGatewayFeature(context, "resetBeforeRequest") ? "reset-before-request" : "reset";
    }
    if (condition !== "rateLimited") return triggers[condition];
    context.report({
      id: "HG352",
      spot: { service: name, path: ["retries", "retryOn"] },
      message: "Envoy Gateway cannot retry refused requests after Retry-After",
      hint: "leave rateLimited out: the caller gets Retry-After and retries",
    });
    return [];
  });
  return {
    numRetries: retries.retriesMax,
    retryOn: {
      triggers: words,
      httpStatusCodes: codes.length === 0 ? undefined : codes,
    },
    perRetry: {
      timeout: retries.perTryMs === undefined ? undefined : gatewayDuration(retries.perTryMs),
      backOff: {
        baseInterval: gatewayDuration(retries.backOffBaseMs),
        maxInterval: gatewayDuration(retries.backOffMsMax),
      },
    },
  };
}
