import type { GradientFacts, NodeLatency } from "../core/feedback.js";
import type { ServiceClusters } from "../policy/service-clusters.js";
import { type ClusterLoad, ClusterSignals, type ClusterSummary } from "./cluster-signals.js";
import { joinLatencies } from "./latency-window.js";
import type { MetricSample } from "./metrics-message.js";

/** What an Envoy did for one service since it was asked last. */
export interface ServiceSummary {
  readonly service: string;
  readonly atMs: number;
  readonly inFlight: number;
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

/** The longest time that one flush or load report can be about, in milliseconds. */
const coveredMsMax = 60_000;

/** All that one Envoy says of itself in statistics and load reports. */
export class NodeSignals {
  readonly #clusters = new Map<string, ClusterSignals>();
  readonly #gradients = new Map<string, Partial<GradientFacts>>();
  readonly #lastRps = new Map<string, number>();
  #lastFlushMs = 0;
  #ignoredCount = 0;

  /** Numbers that came twice, too late, or beyond a bound. */
  get ignoredCount(): number {
    return this.#ignoredCount;
  }

  /** Clusters that were spoken of, with when that was last. */
  *clusters(): Iterable<readonly [string, ClusterSignals]> {
    yield* this.#clusters;
  }

  /** A flush, or a part of one. @param samples of clusters of services only */
  addMetrics(samples: readonly MetricSample[], nowMs: number): void {
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
  take(clusters: ServiceClusters, nowMs: number): readonly ServiceSummary[] {
    const byService = new Map<string, ClusterSummary[]>();
    for (const [cluster, signals] of this.#clusters) {
      const summary = signals.take(nowMs);
      const service = clusters.serviceOf(cluster);
      if (service === undefined) {
        this.#clusters.delete(cluster);
        continue;
      }
      if (summary.atMs === Number.NEGATIVE_INFINITY) continue;
      const summaries = byService.get(service);
      if (summaries === undefined) byService.set(service, [summary]);
      else summaries.push(summary);
    }
    for (const service of this.#lastRps.keys()) {
      if (!byService.has(service)) this.#lastRps.delete(service);
    }
    const isOnly = byService.size === 1;
    return [...byService].map(([service, summaries]) => ({
      service,
      ...this.#join(service, summaries),
      gradientFacts: this.#gradientOf(service, isOnly),
    }));
  }

  #join(
    service: string,
    summaries: readonly ClusterSummary[],
  ): Omit<ServiceSummary, "service" | "gradientFacts"> {
    const sum = (of: (summary: ClusterSummary) => number): number =>
      summaries.reduce((total, summary) => total + of(summary), 0);
    return {
      atMs: Math.max(...summaries.map(({ atMs }) => atMs)),
      inFlight: sum(({ inFlight }) => inFlight),
      rps: this.#rpsOf(service, summaries),
      latency: joinLatencies(summaries.map(({ latency }) => latency)),
      errorCount: sum(({ errorCount }) => errorCount),
      dropCount: sum(({ dropCount }) => dropCount),
      overflowCount: sum(({ overflowCount }) => overflowCount),
    };
  }

  /** The rate over the time that was spoken of; where none was, it is the one of before. */
  #rpsOf(service: string, summaries: readonly ClusterSummary[]): number {
    const told = summaries.filter(({ coveredMs }) => coveredMs > 0);
    if (told.length === 0) return this.#lastRps.get(service) ?? 0;
    const rps = told.reduce((sum, one) => sum + (one.endedCount / one.coveredMs) * 1_000, 0);
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
    if (known === undefined && this.#gradients.size >= gradientsPerNodeMax) {
      this.#ignoredCount += 1;
      return;
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
    const signals = new ClusterSignals();
    this.#clusters.set(name, signals);
    return signals;
  }
}

/** When a load report came, and how much time it is about. */
export interface LoadTime {
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
