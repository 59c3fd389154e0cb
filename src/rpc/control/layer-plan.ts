import { type Priority, priorities } from "../../core/admission/priority.js";
import {
  admissionControlKey,
  type BreakerPriority,
  breakerKey,
  localRateLimitKey,
  retryBudgetKey,
  shedKey,
} from "../../core/feedback/runtime-keys.js";
import type { ProxyGroup, ServiceClusters } from "../../policy/services/service-clusters.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { RetryBudgetSettings } from "../../policy/upstream/circuit-breakers.js";
import type { LayerValue, NodeLayer } from "../nodes/layer-ledger.js";

/** The class that a closed gate does not refuse, as in admission itself. */
const sparedPriority: Priority = "critical";

/** Maximum number of groups of Envoys whose clusters are kept, for each service. */
const plannedGroupsMax = 1_000;

/** Maximum number of clusters whose keys are kept. Those of others are created each time. */
export const plannedClustersMax = 10_000;

/** What layers are created from while one policy is active. */
export interface LayerPlan {
  readonly services: readonly PlannedService[];
  /** Services whose pins conflict, because Envoy has one pin for all of its filters. */
  readonly contestedPins: readonly string[];
  /**
   * Values that apply while Headgate runs, with any snapshot: fallbacks for its absence are off.
   */
  readonly liveValues: ReadonlyMap<string, LayerValue>;
  /** The last layer that was created: most Envoys have the same clusters. */
  last: Pick<NodeLayer, "values" | "shares"> | undefined;
  /** Whether the layers of these services depend on a snapshot. */
  readonly needsSnapshot: boolean;
  /** Returns the keys of a cluster's breakers at both of Envoy's priorities. */
  keysOf(cluster: string): ClusterKeys;
}

/** The parts of one service that layers need. */
export interface PlannedService {
  readonly name: string;
  /** Whether its share is applied to circuit breakers. */
  readonly isBroken: boolean;
  /** Retries that depend on a share. Undefined: the policy has none, and layers omit them. */
  readonly retries: PlannedRetries | undefined;
  readonly pin: PlannedPin;
  readonly shedKeys: readonly string[];
  /** Returns the clusters of an Envoy that the policy names. */
  clustersAt(at: ProxyGroup): readonly string[];
}

/** How the policy bounds retries: by a budget, or by a number. */
export type PlannedRetries =
  | ({ readonly kind: "budget" } & RetryBudgetSettings)
  | { readonly kind: "fixed"; readonly retriesMax: number };

/**
 * Whether a service's share pins Envoy's own controllers. `unfixed`: it should, but their minimum
 * is not fixed in the policy: they would measure it in windows that a pin does not affect.
 */
type PlannedPin = "none" | "fixed" | "unfixed";

/** Keys by priority. */
export type ClusterKeys = Readonly<Record<BreakerPriority, BreakerKeys>>;

/** Keys of one breaker. */
export interface BreakerKeys {
  readonly requests: string;
  readonly pendingRequests: string;
  readonly retries: string;
  readonly budgetPercent: string;
  readonly retriesMin: string;
}

/** Plans the layers of a policy. */
export function planLayers(
  services: readonly ServicePolicy[],
  clusters: ServiceClusters,
): LayerPlan {
  const planned = services
    .filter(({ concurrency, admission }) => {
      return (concurrency?.feedback.length ?? 0) > 0 || admission?.gate !== undefined;
    })
    .map((service) => planService(service, clusters));
  const known = new Map<string, ClusterKeys>();
  return {
    services: planned,
    contestedPins: contestedPinsOf(planned),
    liveValues: liveValuesOf(services),
    last: undefined,
    needsSnapshot: planned.length > 0,
    keysOf: (cluster) => {
      const keys = known.get(cluster);
      if (keys !== undefined) return keys;
      const made = clusterKeys(cluster);
      if (known.size < plannedClustersMax) known.set(cluster, made);
      return made;
    },
  };
}

/** Returns the services that request a pin without a fixed minimum, so that none is sent. */
export function unfixedPins({ services }: LayerPlan): readonly string[] {
  return services.filter(({ pin }) => pin === "unfixed").map(({ name }) => name);
}

function contestedPinsOf(services: readonly PlannedService[]): readonly string[] {
  const pinned = services.filter(({ pin }) => pin === "fixed").map(({ name }) => name);
  return pinned.length > 1 ? pinned : [];
}

function planService(service: ServicePolicy, clusters: ServiceClusters): PlannedService {
  const { name, concurrency } = service;
  const clustersOf = new Map<string, readonly string[]>();
  return {
    name,
    isBroken: concurrency?.feedback.includes("circuitBreakers") === true,
    retries: retriesOf(service),
    pin: pinOf(service),
    shedKeys: priorities
      .filter((priority) => priority !== sparedPriority)
      .map((priority) => shedKey(name, priority)),
    clustersAt: (at) => {
      const known = clustersOf.get(at.cluster);
      if (known !== undefined) return known;
      const found = clusters.clustersOf(name, at);
      if (clustersOf.size >= plannedGroupsMax) clustersOf.clear();
      clustersOf.set(at.cluster, found);
      return found;
    },
  };
}

function retriesOf({ retries, circuitBreakers }: ServicePolicy): PlannedRetries | undefined {
  if (retries === undefined) return undefined;
  const { retryBudget, retriesMax } = circuitBreakers;
  return retryBudget === undefined
    ? { kind: "fixed", retriesMax }
    : { kind: "budget", ...retryBudget };
}

function pinOf({ concurrency, adaptiveConcurrency }: ServicePolicy): PlannedPin {
  if (concurrency?.feedback.includes("adaptiveConcurrency") !== true) return "none";
  return adaptiveConcurrency?.minRtt.kind === "fixed" ? "fixed" : "unfixed";
}

/** Returns fractions of 0 percent, and flags that are off, in the forms of Envoy's runtime. */
function liveValuesOf(services: readonly ServicePolicy[]): ReadonlyMap<string, LayerValue> {
  const values = new Map<string, LayerValue>();
  for (const { name, localRateLimit, admissionControl } of services) {
    if (localRateLimit?.when === "withoutHeadgate") values.set(localRateLimitKey(name), 0);
    if (admissionControl?.when === "withoutHeadgate") values.set(admissionControlKey(name), false);
  }
  return values;
}

function clusterKeys(cluster: string): ClusterKeys {
  return { default: breakerKeys(cluster, "default"), high: breakerKeys(cluster, "high") };
}

function breakerKeys(cluster: string, priority: BreakerPriority): BreakerKeys {
  return {
    requests: breakerKey(cluster, priority, "max_requests"),
    pendingRequests: breakerKey(cluster, priority, "max_pending_requests"),
    retries: breakerKey(cluster, priority, "max_retries"),
    budgetPercent: retryBudgetKey(cluster, priority, "budget_percent"),
    retriesMin: retryBudgetKey(cluster, priority, "min_retry_concurrency"),
  };
}
