import type { AdaptiveConcurrencyPolicy } from "./adaptive-concurrency.js";
import type { AdmissionControlPolicy } from "./admission-control.js";
import type { CircuitBreakerPolicy } from "./circuit-breakers.js";
import type { HealthCheckPolicy } from "./health-checks.js";
import type { LoadBalancingPolicy } from "./load-balancing.js";
import type { LocalRateLimitPolicy } from "./local-rate-limit.js";
import type { OutlierDetectionPolicy } from "./outlier-detection.js";
import type { RetryPolicy, TimeoutPolicy } from "./retries.js";

/** Which Envoys hold a service's protections: those before it, or those of its callers. */
type Direction = "inbound" | "outbound";

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
