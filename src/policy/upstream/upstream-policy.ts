/**
 * What Envoy itself holds against a service: limits of its cluster, retries, times. Plain data in
 * the units that its configuration is made of.
 */

/** Where a service listens. */
export interface UpstreamPlace {
  readonly address: string;
  readonly port: number;
  /** How proxies speak TLS to it; undefined: plaintext. Default TLS on port 443 alone. */
  readonly tls?: UpstreamTls | undefined;
  /**
   * What it speaks. Undefined: as its callers do behind a plaintext listener; behind one of TLS,
   * where most callers speak HTTP/2, what both sides of its TLS agree on, else HTTP/1.1.
   */
  readonly protocol?: UpstreamProtocol | undefined;
}

/** Which HTTP a service speaks. */
export type UpstreamProtocol = "http1" | "http2";

/** What proxies know a TLS server by; paths as the proxy sees them. */
export interface ClientTls {
  readonly caFile: string;
  /** Of the proxy, where Headgate asks for one. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | undefined;
  /** The name that is asked for, and that the certificate has. Default the server's address. */
  readonly serverName: string;
}

/** Source: envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext. */
export type UpstreamTls = (
  | (ClientTls & { readonly kind: "files" })
  | {
      readonly kind: "secret";
      /** A secret of authorities, by its name; a proxy follows it as it changes. */
      readonly secret: string;
      /** Whether the proxy shows the secret's certificate. */
      readonly isMutual: boolean;
      /** As of `ClientTls`. */
      readonly serverName: string;
    }
) & {
  /** Names of which the certificate has one: hosts, addresses or URIs. Default `serverName`. */
  readonly subjectAltNames: readonly string[];
};

/** Which Envoys hold a service's protections: those before it, or those of its callers. */
export type Direction = "inbound" | "outbound";

/** Thresholds of Envoy's circuit breakers. Source: envoy.config.cluster.v3.CircuitBreakers. */
export interface CircuitBreakerPolicy {
  /** Connections to the upstream, 1 to 2^32 - 1. Default 1,000. */
  readonly connectionsMax: number;
  /** Requests that wait for a connection. Default 100. */
  readonly pendingRequestsMax: number;
  /**
   * Requests in work at once, 1 to 2^32 - 1; "auto": this proxy's part of the concurrency limit.
   * Default "auto".
   */
  readonly requestsMax: number | "auto";
  /** Retries at once, where there is no budget. Default 3. */
  readonly retriesMax: number;
  /** Undefined where the policy says `retryBudget: off`. Default 20 %, at least 3. */
  readonly retryBudget: RetryBudget | undefined;
  /** Connections to each host; undefined: no bound of its own. */
  readonly hostConnectionsMax: number | undefined;
}

/** How many of the requests in work may be retries. */
export interface RetryBudget {
  /** Above 0 to 100. */
  readonly percent: number;
  /** Retries that are let through whatever the percentage says. */
  readonly retriesMin: number;
}

/** When a host is left out for a while. Source: envoy.config.cluster.v3.OutlierDetection. */
export interface OutlierDetectionPolicy {
  /** Answers of 5xx, one after the other. Default 5. */
  readonly consecutive5xx: number;
  /** Answers of 502, 503 and 504, one after the other. Default 5. */
  readonly consecutiveGatewayFailures: number;
  /** Default 10,000. */
  readonly intervalMs: number;
  /** For the first time; longer each time. Default 30,000. */
  readonly baseEjectionMs: number;
  /** Default 300,000, and at least `baseEjectionMs`. */
  readonly ejectionMsMax: number;
  /** Share of hosts that may be out at once, 0 to 100. Default 50. */
  readonly ejectionPercentMax: number;
  /** Hosts whose success is this far below the others'; undefined: not looked at. */
  readonly successRate: SuccessRatePolicy | undefined;
  /** Hosts of which too large a part fails; undefined: not looked at. */
  readonly failurePercentage: FailurePercentagePolicy | undefined;
  /**
   * Connections and time-outs that failed in a row, which then count by themselves; undefined: they
   * count as answers of 5xx.
   */
  readonly localOriginFailures: number | undefined;
}

/** Source: envoy.config.cluster.v3.OutlierDetection, failure_percentage_*. */
export interface FailurePercentagePolicy {
  /** Failures of an interval that eject a host, above 0 to 100 percent. Default 85. */
  readonly thresholdPercent: number;
  /** Default 5. */
  readonly hostsMin: number;
  /** Default 50. */
  readonly requestsMin: number;
}

/** How hosts are asked whether they are well. Source: envoy.config.core.v3.HealthCheck. */
export interface HealthCheckPolicy {
  readonly probe: HealthProbe;
  /** At most `intervalMs`. Default 1,000. */
  readonly timeoutMs: number;
  /** Default 3,000. */
  readonly intervalMs: number;
  /** Failures in a row after which a host is left out. Default 3. */
  readonly unhealthyThreshold: number;
  /** Successes in a row after which it is back. Default 1. */
  readonly healthyThreshold: number;
}

/** What is asked of a host. */
export type HealthProbe =
  /** A connection. */
  | { readonly kind: "tcp" }
  | {
      readonly kind: "http";
      readonly path: string;
      /** Undefined: the service's first host, else its address. */
      readonly host: string | undefined;
      /** Default 200 alone. */
      readonly statuses: readonly number[];
    }
  /** Of grpc.health.v1; undefined: the server as a whole. */
  | { readonly kind: "grpc"; readonly service: string | undefined };

/** How hosts of a service are chosen. */
export interface LoadBalancingPolicy {
  /** Percent of healthy hosts below which health is not looked at; undefined: the target's own. */
  readonly panicThresholdPercent: number | undefined;
  /** What requests to one host have in common; undefined: the less busy of two by chance. */
  readonly hash: HashSource | undefined;
  /** Undefined: new hosts get as much as all others. */
  readonly slowStart: SlowStartPolicy | undefined;
  /** Hosts of the proxy's own zone first; undefined: all zones alike. */
  readonly zoneAware: ZoneAwarePolicy | undefined;
}

/** Source: envoy.config.cluster.v3.Cluster.CommonLbConfig.ZoneAwareLbConfig. */
export interface ZoneAwarePolicy {
  /** Hosts of a service below which zones are not looked at. Default 6. */
  readonly clusterSizeMin: number;
}

/** By what requests are told apart. Source: envoy.config.route.v3.RouteAction.HashPolicy. */
export type HashSource =
  | { readonly kind: "header"; readonly name: string }
  | { readonly kind: "query"; readonly name: string }
  /** Made where it is not there; 0: for the session. Whole seconds. */
  | { readonly kind: "cookie"; readonly name: string; readonly ttlMs: number }
  | { readonly kind: "sourceIp" };

/** Source: envoy.config.cluster.v3.Cluster.SlowStartConfig. */
export interface SlowStartPolicy {
  /** How long a host is new. Default 60,000. */
  readonly windowMs: number;
  /** What it gets at first, 1 to 100 percent. Default 10. */
  readonly weightPercentMin: number;
}

/** Source: envoy.config.cluster.v3.OutlierDetection, success_rate_*. */
export interface SuccessRatePolicy {
  /** Hosts with enough requests before anybody is judged. Default 5. */
  readonly hostsMin: number;
  /** Requests of a host in an interval. Default 100. */
  readonly requestsMin: number;
  /** Standard deviations below the mean. Default 1.9. */
  readonly deviations: number;
}

/** What may be tried again. */
export type RetryCondition =
  | "connectFailure"
  | "refusedStream"
  | "reset"
  | "gatewayError"
  | "5xx"
  | "retriableStatus"
  | "rateLimited";

/** Source: envoy.config.route.v3.RetryPolicy. */
export interface RetryPolicy {
  /** Tries after the first, 1 to 10. Default 2. */
  readonly retriesMax: number;
  /** Default connectFailure, refusedStream, reset: what the upstream has surely not begun. */
  readonly on: readonly RetryCondition[];
  /** Undefined: only the request's own time bounds a try. */
  readonly perTryMs: number | undefined;
  /** A try on which nothing moves; shorter than `perTryMs`. Undefined: no bound of its own. */
  readonly perTryIdleMs: number | undefined;
  /** A try that takes longer than `perTryMs` goes on, beside the next one; undefined: it ends. */
  readonly hedging: "onPerTryTimeout" | undefined;
  /** What "retriableStatus" means, 400 to 599; empty without it. */
  readonly retriableStatusCodes: readonly number[];
  /** Jittered, doubling. Default 25. */
  readonly backOffBaseMs: number;
  /** Default 250; at least the base. */
  readonly backOffMsMax: number;
  /**
   * The longest Retry-After of a refusal that is waited for; undefined: refusals that name one are
   * answered to the caller. Default undefined, 1,000 where `on` has "rateLimited".
   */
  readonly retryAfterMsMax: number | undefined;
}

/** How long what may take. Undefined: Envoy's own default holds. */
export interface TimeoutPolicy {
  /** A request, with its retries. Default 15,000; 0: for ever, as streams need it. */
  readonly requestMs: number;
  /** A connection that is made. Default 250. */
  readonly connectMs: number;
  /** A stream on which nothing moves. */
  readonly idleMs: number | undefined;
  /** A request or upgraded connection, whatever moves on it; at least `requestMs`. */
  readonly maxStreamMs: number | undefined;
  /** A connection to the service, which takes no further requests then. */
  readonly maxConnectionMs: number | undefined;
}

/** When a local protection of Envoy acts. */
export type ProtectionTime =
  /** Always. */
  | "always"
  /** While no Headgate renews the proxy's runtime layer, once its time to live is over. */
  | "withoutHeadgate";

/** A token bucket in each proxy. Source: envoy.extensions.filters.http.local_ratelimit.v3. */
export interface LocalRateLimitPolicy {
  /** Tokens an interval, 1 to 2^32 - 1. */
  readonly requests: number;
  /** At least 50. Default 1,000. */
  readonly perMs: number;
  /** Size of the bucket, at least `requests`. Default `requests`. */
  readonly burst: number;
  /** Default "withoutHeadgate". */
  readonly when: ProtectionTime;
}

/**
 * Envoy's gradient controller. Source:
 * envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency.
 */
export interface AdaptiveConcurrencyPolicy {
  /** Default 1,000. */
  readonly limitMax: number;
  /** Default 3. */
  readonly limitMin: number;
  /** Which latency is looked at, above 0 to 100. Default 90. */
  readonly percentile: number;
  /** Time between two limits. Default 100. */
  readonly updateMs: number;
  readonly minRtt:
    | {
        readonly kind: "sampled";
        /** Default 60,000. */
        readonly everyMs: number;
        /** Default 50. */
        readonly requestCount: number;
        /** Part of the interval that it may come later, 0 to 100. Default 15. */
        readonly jitterPercent: number;
        /** Added to what was measured, 0 to 100. Default 25. */
        readonly bufferPercent: number;
      }
    | {
        /** Never measured by Envoy; what Headgate pins needs it. */
        readonly kind: "fixed";
        readonly ms: number;
        readonly bufferPercent: number;
      };
}

/**
 * Refusing on the caller's side while too much fails. Source:
 * envoy.extensions.filters.http.admission_control.v3.AdmissionControl.
 */
export interface AdmissionControlPolicy {
  /** 1 is none; above, more is refused for the same failures. Default 1.5. */
  readonly aggression: number;
  /** Success that is good enough, above 0 to 100. Default 95. */
  readonly successRateThresholdPercent: number;
  /** Default 30,000; whole seconds. */
  readonly samplingWindowMs: number;
  /** Below so many requests a second nothing is refused. Default 5. */
  readonly requestsPerSecondMin: number;
  /** Never more is refused, 0 to 100. Default 80. */
  readonly rejectPercentMax: number;
  /** Default "always". */
  readonly when: ProtectionTime;
}

/** What Envoy itself holds against a service. */
export interface UpstreamProtections {
  /** Default "inbound". */
  readonly direction: Direction;
  /** Clusters of Envoys that lead to it, beside those named by itself and by its upstream. */
  readonly clusters: readonly string[];
  readonly circuitBreakers: CircuitBreakerPolicy;
  /** Undefined where the policy says `outlierDetection: off`. */
  readonly outlierDetection: OutlierDetectionPolicy | undefined;
  /** Undefined: nobody asks hosts whether they are well. Default. */
  readonly healthChecks: HealthCheckPolicy | undefined;
  readonly loadBalancing: LoadBalancingPolicy;
  /** Undefined: nothing is tried again. Default. */
  readonly retries: RetryPolicy | undefined;
  readonly timeouts: TimeoutPolicy;
  /** Protocols that a request may change to, in lower case. Default "websocket" alone. */
  readonly upgrades: readonly string[];
  /** Undefined: none. Default. */
  readonly localRateLimit: LocalRateLimitPolicy | undefined;
  /** Undefined: none. Default what `proxies` says. */
  readonly adaptiveConcurrency: AdaptiveConcurrencyPolicy | undefined;
  /** Undefined: none. Default what `proxies` says. */
  readonly admissionControl: AdmissionControlPolicy | undefined;
}
