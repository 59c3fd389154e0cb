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

/** What a closed gate spares, as admission itself does. */
const sparedPriority: Priority = "critical";

/** Groups of Envoys whose clusters are kept, for each service. */
const plannedGroupsMax = 1_000;

/** Clusters whose keys are kept made; those of others are made each time. */
export const plannedClustersMax = 10_000;

/** What layers are made of while one policy is active. */
export interface LayerPlan {
  readonly services: readonly PlannedService[];
  /** Services whose pins exclude each other: Envoy has one pin for all of its filters. */
  readonly contestedPins: readonly string[];
  /**
   * What holds while Headgate lives, whatever a snapshot says: what is only for without it is off.
   */
  readonly liveValues: ReadonlyMap<string, LayerValue>;
  /** The layer that was made last: most Envoys have the same clusters. */
  last: Pick<NodeLayer, "values" | "shares"> | undefined;
  /** Whether a snapshot has anything to say of these services. */
  readonly needsSnapshot: boolean;
  /** The keys of a cluster's breakers at both of Envoy's priorities. */
  keysOf(cluster: string): ClusterKeys;
}

/** One service, as its layers need it. */
export interface PlannedService {
  readonly name: string;
  /** Whether its share goes to circuit breakers. */
  readonly isBroken: boolean;
  /** Retries that go with a share; undefined: the policy has none, and nothing is said of them. */
  readonly retries: PlannedRetries | undefined;
  readonly pin: PlannedPin;
  readonly shedKeys: readonly string[];
  /** The clusters of an Envoy that the policy knows of. */
  clustersAt(at: ProxyGroup): readonly string[];
}

/** As the policy bounds them: by a budget, or by a number. */
export type PlannedRetries =
  | ({ readonly kind: "budget" } & RetryBudgetSettings)
  | { readonly kind: "fixed"; readonly retriesMax: number };

/**
 * Whether a service's share pins Envoy's own controllers. `unfixed`: it should, but the policy does
 * not say that their minimum is fixed: they would measure it in windows that a pin does not reach.
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

/** Services that ask for a pin, and whose minimum is not fixed: none is sent. */
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

/** A fraction of 0 percent, and a flag that is off, as Envoy's runtime takes each. */
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
