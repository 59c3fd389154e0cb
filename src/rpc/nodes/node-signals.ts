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

/** What an Envoy did for one service since it was asked last. */
interface ServiceSummary {
  readonly service: string;
  readonly atMs: number;
  readonly inFlight: number;
  /** Of them, those at HIGH; undefined where that is not known of all. */
  readonly highInFlight: number | undefined;
  readonly rps: number;
  readonly latency: NodeLatency;
  readonly errorCount: number;
  readonly dropCount: number;
  readonly overflowCount: number;
  readonly gradientFacts: GradientFacts | undefined;
}

/** Clusters of services that are followed at one Envoy; it may have several for a service. */
export const clustersPerNodeMax = 2_000;

/** Gradient controllers that are followed at one Envoy: one a listener. */
export const gradientsPerNodeMax = 16;

/** Bytes of a cluster or a controller that is followed, beside its name, about. */
const followedBytes = 2_700;

/** Bytes that all Envoys together may take here. */
export class NodeRoom {
  #bytesLeft: number;

  constructor(bytesMax: number) {
    this.#bytesLeft = bytesMax;
  }

  /** False where there are not so many left: then none are taken. */
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
  /** Active threshold of a cluster's breaker at HIGH; undefined: not known. */
  readonly highThresholdOf: (cluster: string, service: string) => number | undefined;
}

const noTerms: TakeTerms = { at: { cluster: "" }, highThresholdOf: () => undefined };

/** The longest time that one flush or load report can be about, in milliseconds. */
const coveredMsMax = 60_000;

/** All that one Envoy says of itself in statistics and load reports. */
export class NodeSignals {
  readonly #clusters = new Map<string, ClusterSignals>();
  readonly #gradients = new Map<string, Partial<GradientFacts>>();
  readonly #lastRps = new Map<string, number>();
  readonly #clusterShares = new ClusterShares();
  /** By service, what its clusters could use: those that were spoken of. */
  #demands: ReadonlyMap<string, readonly ClusterDemand[]> = new Map();
  #metricsAtMs = Number.NEGATIVE_INFINITY;
  #lastFlushMs = 0;
  #ignoredCount = 0;
  readonly #room: NodeRoom;
  #bytes = 0;

  constructor(room = new NodeRoom(Number.POSITIVE_INFINITY)) {
    this.#room = room;
  }

  /** Numbers that came twice, too late, or beyond a bound. */
  get ignoredCount(): number {
    return this.#ignoredCount;
  }

  /** The Envoy is forgotten: its room is others'. */
  close(): void {
    this.#room.giveBack(this.#bytes);
    this.#bytes = 0;
  }

  /** Clusters that were spoken of, with when that was last. */
  *clusters(): Iterable<readonly [string, ClusterSignals]> {
    yield* this.#clusters;
  }

  /** A flush, or a part of one. @param samples of clusters of services only */
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

  /** Whether statistics come, and speak of all clusters of which load reports have news. */
  hasMetricsOf(loads: readonly ClusterLoad[], nowMs: number): boolean {
    if (nowMs - this.#metricsAtMs > metricsFreshMs) return false;
    return loads.every((load) => {
      const isReported = this.#clusters.get(load.cluster)?.hasMetrics(nowMs) === true;
      return isReported || isUnused(load);
    });
  }

  /** A load report. @param loads of clusters of services only */
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

  /** A new stream of statistics: its flushes follow no other's. */
  beginMetrics(): void {
    this.#lastFlushMs = 0;
  }

  /** What has come since this was called last, by service; what leads to none is dropped. */
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

  /** In how many clusters it has a service, as far as it has told: one at least. */
  clusterCount(service: string): number {
    return Math.max(1, this.#demands.get(service)?.length ?? 1);
  }

  /**
   * A share of a service by the clusters in which this Envoy has it; empty where it has told of
   * none, as one does that tells another replica.
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

  /** The rate over the time that was spoken of; where none was, it is the one of before. */
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

  /** A listener's controller is a service's of its name, or the only one of the only service. */
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

  /** All parts of a flush have one stamp: the first says how long ago the last flush was. */
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

/** As `core/feedback/feedback-nodes` has it for all clusters of a service together. */
function demandOf(cluster: string, summary: ClusterSummary): ClusterDemand {
  const { inFlight, highInFlight = 0, overflowCount, endedCount } = summary;
  const demand = Math.max(inFlight, Math.min(1, overflowCount));
  return {
    cluster,
    demand: demand * (1 + overflowCount / Math.max(1, endedCount)),
    highDemand: highInFlight,
  };
}

/** Envoy reports clusters that it never used, of which its statistics say nothing. */
function isUnused({ inFlight, successCount, errorCount, dropCount }: ClusterLoad): boolean {
  return inFlight === 0 && successCount === 0 && errorCount === 0 && dropCount === 0;
}

/** When a load report came, and how much time it is about. */
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
