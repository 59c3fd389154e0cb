import type { GradientFacts, NodeLatency, NodeShare } from "../../core/feedback/feedback.js";
import type { ProxyGroup, ServiceClusters } from "../../policy/services/service-clusters.js";
import { type ClusterDemand, ClusterShares } from "./cluster-shares.js";
import {
  type ClusterLoad,
  ClusterSignals,
  type ClusterSummary,
  metricsFreshMs,
} from "./cluster-signals.js";
import { joinLatencies } from "./latency-window.js";
import type { MetricSample } from "./metrics-message.js";

/** What an Envoy did for one service since the last call. */
interface ServiceSummary {
  readonly service: string;
  readonly atMs: number;
  readonly inFlight: number;
  /** The part of them at HIGH. Undefined unless known for all clusters. */
  readonly highInFlight: number | undefined;
  readonly rps: number;
  readonly latency: NodeLatency;
  readonly errorCount: number;
  readonly dropCount: number;
  readonly overflowCount: number;
  readonly gradientFacts: GradientFacts | undefined;
}

/** Maximum number of service clusters that are tracked per Envoy. A service may have several. */
export const clustersPerNodeMax = 2_000;

/** Maximum number of gradient controllers that are tracked per Envoy: one per listener. */
export const gradientsPerNodeMax = 16;

/** Approximate memory for a tracked cluster or controller, without its name, in bytes. */
const followedBytes = 2_700;

/** The memory that all Envoys together may use here. */
export class NodeRoom {
  #bytesLeft: number;

  constructor(bytesMax: number) {
    this.#bytesLeft = bytesMax;
  }

  /** Reserves memory. Returns false and reserves nothing if there is not enough. */
  take(bytes: number): boolean {
    if (bytes > this.#bytesLeft) return false;
    this.#bytesLeft -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#bytesLeft += bytes;
  }
}

interface TakeTerms {
  readonly at: ProxyGroup;
  /** The active threshold of a cluster's HIGH breaker. Undefined if unknown. */
  readonly highThresholdOf: (cluster: string, service: string) => number | undefined;
}

const noTerms: TakeTerms = { at: { cluster: "" }, highThresholdOf: () => undefined };

/** The longest time that one flush or load report can cover, in milliseconds. */
const coveredMsMax = 60_000;

/** Everything that one Envoy reports in metrics and load reports. */
export class NodeSignals {
  readonly #clusters = new Map<string, ClusterSignals>();
  readonly #gradients = new Map<string, Partial<GradientFacts>>();
  readonly #lastRps = new Map<string, number>();
  readonly #clusterShares = new ClusterShares();
  /** By service, the demand of the clusters that were reported. */
  #demands: ReadonlyMap<string, readonly ClusterDemand[]> = new Map();
  #metricsAtMs = Number.NEGATIVE_INFINITY;
  #lastFlushMs = 0;
  #ignoredCount = 0;
  readonly #room: NodeRoom;
  #bytes = 0;

  constructor(room = new NodeRoom(Number.POSITIVE_INFINITY)) {
    this.#room = room;
  }

  /** Samples that were duplicate, too late, or beyond a bound. */
  get ignoredCount(): number {
    return this.#ignoredCount;
  }

  /** The Envoy was forgotten. Releases its memory. */
  close(): void {
    this.#room.giveBack(this.#bytes);
    this.#bytes = 0;
  }

  /** The reported clusters, each with the time of its last report. */
  *clusters(): Iterable<readonly [string, ClusterSignals]> {
    yield* this.#clusters;
  }

  /** Adds a flush or a part of one. @param samples of clusters of services only */
  addMetrics(samples: readonly MetricSample[], nowMs: number): void {
    this.#metricsAtMs = nowMs;
    for (const sample of samples) {
      if (sample.kind === "gradient") {
        this.#addGradient(sample);
        continue;
      }
      const signals = this.#clusterOf(sample.cluster);
      this.#cover(sample.stampMs > 0 ? sample.stampMs : nowMs);
      if (signals === undefined || !signals.addSample(sample, nowMs)) this.#ignoredCount += 1;
    }
  }

  /** Whether metrics arrive and cover all clusters that load reports have changes for. */
  hasMetricsOf(loads: readonly ClusterLoad[], nowMs: number): boolean {
    if (nowMs - this.#metricsAtMs > metricsFreshMs) return false;
    return loads.every((load) => {
      const isReported = this.#clusters.get(load.cluster)?.hasMetrics(nowMs) === true;
      return isReported || isUnused(load);
    });
  }

  /** Adds a load report. @param loads of clusters of services only */
  addLoads(loads: readonly ClusterLoad[], { coveredMs, nowMs }: LoadTime): void {
    const spoken = new Set(loads.map(({ cluster }) => cluster));
    for (const load of loads) {
      const signals = this.#clusterOf(load.cluster);
      if (signals === undefined) this.#ignoredCount += 1;
      else signals.addLoad({ ...load, coveredMs: Math.min(load.coveredMs, coveredMsMax) }, nowMs);
    }
    for (const [cluster, signals] of this.#clusters) {
      if (!spoken.has(cluster)) signals.addIdleLoad(Math.min(coveredMs, coveredMsMax), nowMs);
    }
  }

  /** A new metrics stream has started. Its first flush has no predecessor. */
  beginMetrics(): void {
    this.#lastFlushMs = 0;
  }

  /**
   * Returns what was reported since the last call, by service. Data of other clusters is dropped.
   */
  take(
    clusters: ServiceClusters,
    nowMs: number,
    { at, highThresholdOf }: TakeTerms = noTerms,
  ): readonly ServiceSummary[] {
    const byService = new Map<string, ClusterSummary[]>();
    const demands = new Map<string, ClusterDemand[]>();
    for (const [cluster, signals] of this.#clusters) {
      const service = clusters.serviceOf(cluster, at);
      if (service === undefined) {
        this.#clusters.delete(cluster);
        this.#bytes -= bytesOf(cluster);
        this.#room.giveBack(bytesOf(cluster));
        continue;
      }
      const summary = signals.take(nowMs, highThresholdOf(cluster, service));
      const demand = demandOf(cluster, summary);
      const known = demands.get(service);
      if (known === undefined) demands.set(service, [demand]);
      else known.push(demand);
      if (summary.atMs === Number.NEGATIVE_INFINITY) continue;
      const summaries = byService.get(service);
      if (summaries === undefined) byService.set(service, [summary]);
      else summaries.push(summary);
    }
    for (const service of this.#lastRps.keys()) {
      if (!byService.has(service)) this.#lastRps.delete(service);
    }
    for (const service of this.#demands.keys()) {
      if (!demands.has(service)) this.#clusterShares.forget(service);
    }
    this.#demands = demands;
    const isOnly = byService.size === 1;
    const reported: ServiceSummary[] = [];
    for (const [service, summaries] of byService) {
      const gradientFacts = this.#gradientOf(service, isOnly);
      reported.push(this.#join(summaries, { service, gradientFacts }));
    }
    return reported;
  }

  /** The number of clusters for a service, as far as reported; at least one. */
  clusterCount(service: string): number {
    return Math.max(1, this.#demands.get(service)?.length ?? 1);
  }

  /**
   * Divides a share of a service among the clusters of this Envoy. Empty if it has reported none,
   * for example because it reports to another replica.
   */
  divideShare(service: string, share: NodeShare): ReadonlyMap<string, NodeShare> {
    const demands = this.#demands.get(service) ?? [];
    const [only] = demands;
    if (only === undefined) return new Map();
    if (demands.length === 1) return new Map([[only.cluster, share]]);
    return this.#clusterShares.divide(service, share, demands);
  }

  #join(
    summaries: readonly ClusterSummary[],
    { service, gradientFacts }: Pick<ServiceSummary, "service" | "gradientFacts">,
  ): ServiceSummary {
    const [only] = summaries;
    if (only !== undefined && summaries.length === 1) {
      const { atMs, inFlight, highInFlight, latency, errorCount, dropCount, overflowCount } = only;
      const rps = this.#rpsOf(service, summaries);
      return {
        service,
        atMs,
        inFlight,
        highInFlight,
        rps,
        latency,
        errorCount,
        dropCount,
        overflowCount,
        gradientFacts,
      };
    }
    const sum = (of: (summary: ClusterSummary) => number): number =>
      summaries.reduce((total, summary) => total + of(summary), 0);
    return {
      service,
      gradientFacts,
      atMs: Math.max(...summaries.map(({ atMs }) => atMs)),
      inFlight: sum(({ inFlight }) => inFlight),
      highInFlight: summaries.every(({ highInFlight }) => highInFlight !== undefined)
        ? sum(({ highInFlight = 0 }) => highInFlight)
        : undefined,
      rps: this.#rpsOf(service, summaries),
      latency: joinLatencies(summaries.map(({ latency }) => latency)),
      errorCount: sum(({ errorCount }) => errorCount),
      dropCount: sum(({ dropCount }) => dropCount),
      overflowCount: sum(({ overflowCount }) => overflowCount),
    };
  }

  /** The rate over the reported time. If no time was reported, the previous rate. */
  #rpsOf(service: string, summaries: readonly ClusterSummary[]): number {
    let rps = 0;
    let isReported = false;
    for (const { endedCount, coveredMs } of summaries) {
      if (coveredMs <= 0) continue;
      isReported = true;
      rps += (endedCount / coveredMs) * 1_000;
    }
    if (!isReported) return this.#lastRps.get(service) ?? 0;
    this.#lastRps.set(service, rps);
    return rps;
  }

  /** Assigns a listener's controller to the service of the same name, or to the only service. */
  #gradientOf(service: string, isOnly: boolean): GradientFacts | undefined {
    const named = this.#gradients.get(service);
    const [single] = this.#gradients.size === 1 && isOnly ? this.#gradients.values() : [];
    const facts = named ?? single;
    return facts !== undefined && isWhole(facts) ? facts : undefined;
  }

  #addGradient(sample: Extract<MetricSample, { readonly kind: "gradient" }>): void {
    const known = this.#gradients.get(sample.prefix);
    if (known === undefined) {
      if (this.#gradients.size >= gradientsPerNodeMax || !this.#takeRoom(sample.prefix)) {
        this.#ignoredCount += 1;
        return;
      }
    }
    this.#gradients.set(sample.prefix, { ...known, [sample.fact]: sample.value });
  }

  /**
   * All parts of a flush have the same timestamp. The first part gives the time since the last
   * flush.
   */
  #cover(flushMs: number): void {
    const coveredMs = flushMs - this.#lastFlushMs;
    if (coveredMs === 0) return;
    const isFirst = this.#lastFlushMs === 0;
    if (coveredMs < 0 && -coveredMs < coveredMsMax) return;
    this.#lastFlushMs = flushMs;
    if (isFirst || coveredMs < 0) return;
    for (const signals of this.#clusters.values()) {
      signals.addCovered(Math.min(coveredMs, coveredMsMax));
    }
  }

  #clusterOf(name: string): ClusterSignals | undefined {
    const known = this.#clusters.get(name);
    if (known !== undefined || this.#clusters.size >= clustersPerNodeMax) return known;
    if (!this.#takeRoom(name)) return undefined;
    const signals = new ClusterSignals();
    this.#clusters.set(name, signals);
    return signals;
  }

  #takeRoom(name: string): boolean {
    if (!this.#room.take(bytesOf(name))) return false;
    this.#bytes += bytesOf(name);
    return true;
  }
}

function bytesOf(name: string): number {
  return followedBytes + 2 * name.length;
}

/** Computed as `core/feedback/feedback-nodes` does for all clusters of a service. */
function demandOf(cluster: string, summary: ClusterSummary): ClusterDemand {
  const { inFlight, highInFlight = 0, overflowCount, endedCount } = summary;
  const demand = Math.max(inFlight, Math.min(1, overflowCount));
  return {
    cluster,
    demand: demand * (1 + overflowCount / Math.max(1, endedCount)),
    highDemand: highInFlight,
  };
}

/** Envoy reports clusters that it never used, which its metrics do not include. */
function isUnused({ inFlight, successCount, errorCount, dropCount }: ClusterLoad): boolean {
  return inFlight === 0 && successCount === 0 && errorCount === 0 && dropCount === 0;
}

/** When a load report arrived, and the time that it covers. */
interface LoadTime {
  readonly nowMs: number;
  readonly coveredMs: number;
}

const gradientFactNames = [
  "concurrencyLimit",
  "gradient",
  "minRttMs",
  "sampleRttMs",
  "burstQueueSize",
] as const satisfies readonly (keyof GradientFacts)[];

function isWhole(facts: Partial<GradientFacts>): facts is GradientFacts {
  return gradientFactNames.every((name) => facts[name] !== undefined);
}
