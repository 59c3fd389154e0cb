import type {
  AdaptiveConcurrencyPolicy,
  AdmissionControlPolicy,
  CircuitBreakerPolicy,
  FailurePercentagePolicy,
  HealthCheckPolicy,
  LoadBalancingPolicy,
  LocalRateLimitPolicy,
  OutlierDetectionPolicy,
  RetryPolicy,
  SlowStartPolicy,
  SuccessRatePolicy,
  TimeoutPolicy,
  UpstreamProtections,
  ZoneAwarePolicy,
} from "./upstream-policy.js";

/** What holds where a service says nothing of its circuit breakers. */
export const defaultCircuitBreakers = {
  connectionsMax: 1_000,
  pendingRequestsMax: 100,
  requestsMax: "auto",
  retriesMax: 3,
  retryBudget: { percent: 20, retriesMin: 3 },
  hostConnectionsMax: undefined,
} as const satisfies CircuitBreakerPolicy;

/** What holds where a service says nothing of hosts that fail. */
export const defaultOutlierDetection: OutlierDetectionPolicy = {
  consecutive5xx: 5,
  consecutiveGatewayFailures: 5,
  intervalMs: 10_000,
  baseEjectionMs: 30_000,
  ejectionMsMax: 300_000,
  ejectionPercentMax: 50,
  successRate: undefined,
  failurePercentage: undefined,
  localOriginFailures: undefined,
};

/** What holds where a service says nothing of times. */
export const defaultTimeouts: TimeoutPolicy = {
  requestMs: 15_000,
  connectMs: 250,
  idleMs: undefined,
  maxStreamMs: undefined,
  maxConnectionMs: undefined,
};

/** How hosts are chosen where a service says nothing of it. */
export const defaultLoadBalancing: LoadBalancingPolicy = {
  panicThresholdPercent: undefined,
  hash: undefined,
  slowStart: undefined,
  zoneAware: undefined,
};

/** What `zoneAware: {}` means, as Envoy has it by itself. */
export const defaultZoneAware: ZoneAwarePolicy = { clusterSizeMin: 6 };

/** What a request may change to where a service says nothing of it. */
export const defaultUpgrades: readonly string[] = ["websocket"];

/** What holds in Envoy for a service that says nothing of it. */
export const defaultUpstream: UpstreamProtections = {
  direction: "inbound",
  clusters: [],
  circuitBreakers: defaultCircuitBreakers,
  outlierDetection: defaultOutlierDetection,
  healthChecks: undefined,
  loadBalancing: defaultLoadBalancing,
  retries: undefined,
  timeouts: defaultTimeouts,
  upgrades: defaultUpgrades,
  localRateLimit: undefined,
  adaptiveConcurrency: undefined,
  admissionControl: undefined,
};

/** When too large a part of a host's requests fails, where the policy only asks for it. */
export const defaultFailurePercentage: FailurePercentagePolicy = {
  thresholdPercent: 85,
  hostsMin: 5,
  requestsMin: 50,
};

/** How hosts are asked where the policy only says that they are. */
export const defaultHealthChecks: HealthCheckPolicy = {
  probe: { kind: "tcp" },
  timeoutMs: 1_000,
  intervalMs: 3_000,
  unhealthyThreshold: 3,
  healthyThreshold: 1,
};

/** What a new host gets where the policy only asks for it. */
export const defaultSlowStart: SlowStartPolicy = { windowMs: 60_000, weightPercentMin: 10 };

/** What a success rate is judged by where the policy only asks for it. */
export const defaultSuccessRate: SuccessRatePolicy = {
  hostsMin: 5,
  requestsMin: 100,
  deviations: 1.9,
};

/** What holds where a service has retries and says nothing of them. */
export const defaultRetries: RetryPolicy = {
  retriesMax: 2,
  on: ["connectFailure", "refusedStream", "reset"],
  perTryMs: undefined,
  perTryIdleMs: undefined,
  hedging: undefined,
  retriableStatusCodes: [],
  backOffBaseMs: 25,
  backOffMsMax: 250,
  retryAfterMsMax: undefined,
};

/** What holds where a local limit names its requests only. */
export const defaultLocalRateLimit: Pick<LocalRateLimitPolicy, "perMs" | "when"> = {
  perMs: 1_000,
  when: "withoutHeadgate",
};

/** How a round trip is sampled where the policy does not say. */
export const defaultMinRtt = {
  kind: "sampled",
  everyMs: 60_000,
  requestCount: 50,
  jitterPercent: 15,
  bufferPercent: 25,
} as const satisfies AdaptiveConcurrencyPolicy["minRtt"];

/** What holds where adaptive concurrency is asked for and nothing is said of it. */
export const defaultAdaptiveConcurrency: AdaptiveConcurrencyPolicy = {
  limitMax: 1_000,
  limitMin: 3,
  percentile: 90,
  updateMs: 100,
  minRtt: defaultMinRtt,
};

/** What holds where admission control is asked for and nothing is said of it. */
export const defaultAdmissionControl: AdmissionControlPolicy = {
  aggression: 1.5,
  successRateThresholdPercent: 95,
  samplingWindowMs: 30_000,
  requestsPerSecondMin: 5,
  rejectPercentMax: 80,
  when: "always",
};
