import type { GradientFacts, NodeShare } from "../../core/feedback/feedback.js";
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
import { blankReport, type OpenReport, setLatency } from "./open-report.js";

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
  readonly #clusterShares = new ClusterShares();
  /** By service, its clusters as of the last call of `take`. */
  #services = new Map<string, FollowedService>();
  /** Reports of all services: of this second, and of the previous one, which are still in use. */
  #reports: readonly [OpenReport[], OpenReport[]] = [[], []];
  /** How the services were last found. Undefined if a cluster was added since then. */
  #foundBy: { readonly clusters: ServiceClusters; readonly at: ProxyGroup } | undefined;
  /** The cluster that was looked up last: samples of one cluster follow each other. */
  #lastName: string | undefined;
  #last: ClusterSignals | undefined;
  #metricsAtMs = Number.NEGATIVE_INFINITY;
  #lastFlushMs = 0;
  /** Which of the two lists of reports is filled in. */
  #isOdd = false;
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

  /** Whether the cluster is tracked here, because it belongs to a service. */
  follows(cluster: string): boolean {
    if (this.#lastName === cluster) return true;
    const known = this.#clusters.get(cluster);
    if (known === undefined) return false;
    this.#last = known;
    this.#lastName = cluster;
    return true;
  }

  /** Adds a flush or a part of one. @param isOurs whether a sample is of a service's cluster */
  addMetrics(
    samples: readonly MetricSample[],
    nowMs: number,
    isOurs: (sample: MetricSample) => boolean = () => true,
  ): void {
    this.#metricsAtMs = nowMs;
    for (const sample of samples) {
      if (!isOurs(sample)) continue;
      if (sample.kind === "gradient") {
        this.#addGradient(sample);
        continue;
      }
      const signals = this.#clusterOf(sample.cluster);
      const flushMs = sample.stampMs > 0 ? sample.stampMs : nowMs;
      if (flushMs !== this.#lastFlushMs) this.#cover(flushMs);
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
   * The caller fills in the node, and the limits that it holds. The reports are valid until the
   * call after the next one.
   */
  take(
    clusters: ServiceClusters,
    nowMs: number,
    { at, highThresholdOf }: TakeTerms = noTerms,
  ): readonly OpenReport[] {
    if (this.#foundBy?.clusters !== clusters || this.#foundBy.at !== at) this.#find(clusters, at);
    this.#isOdd = !this.#isOdd;
    const reports = this.#reports[this.#isOdd ? 1 : 0];
    let place = 0;
    for (const followed of this.#services.values()) {
      const { service } = followed;
      for (const one of followed.clusters) {
        setDemand(one.demand, one.signals.take(nowMs, highThresholdOf(one.cluster, service)));
      }
      const report = reports[place];
      if (report !== undefined) fill(report, followed, this.#gradientOf(service));
      place += 1;
    }
    return reports;
  }

  /** Whether a service has a cluster here, as of the last call of `take`. */
  reports(service: string): boolean {
    return this.#services.has(service);
  }

  /** Finds the service of each cluster, and forgets clusters without a service. */
  #find(clusters: ServiceClusters, at: ProxyGroup): void {
    const before = this.#services;
    this.#services = new Map();
    this.#lastName = undefined;
    for (const [cluster, signals] of this.#clusters) {
      const service = clusters.serviceOf(cluster, at);
      if (service === undefined) {
        this.#clusters.delete(cluster);
        this.#bytes -= bytesOf(cluster);
        this.#room.giveBack(bytesOf(cluster));
        continue;
      }
      const known: FollowedService = this.#services.get(service) ?? {
        service,
        clusters: [],
        demands: [],
        undivided: new Map(),
        lastRps: before.get(service)?.lastRps ?? 0,
      };
      this.#services.set(service, known);
      const demand = { cluster, demand: 0, highDemand: 0 };
      known.clusters.push({ cluster, signals, demand });
      known.demands.push(demand);
    }
    for (const service of before.keys()) {
      if (!this.#services.has(service)) this.#clusterShares.forget(service);
    }
    const names = [...this.#services.keys()];
    this.#reports = [names.map(blankReport), names.map(blankReport)];
    this.#foundBy = { clusters, at };
  }

  /** The number of clusters for a service, as far as reported; at least one. */
  clusterCount(service: string): number {
    return Math.max(1, this.#services.get(service)?.clusters.length ?? 1);
  }

  /**
   * Divides a share of a service among the clusters of this Envoy. Empty if it has reported none,
   * for example because it reports to another replica. Valid until the next call.
   */
  divideShare(service: string, share: NodeShare): ReadonlyMap<string, NodeShare> {
    const followed = this.#services.get(service);
    const [only] = followed?.clusters ?? [];
    if (followed === undefined || only === undefined) return noShares;
    const { demands } = followed;
    if (demands.length > 1) return this.#clusterShares.divide(service, share, demands);
    return followed.undivided.set(only.cluster, share);
  }

  /** Assigns a listener's controller to the service of the same name, or to the only service. */
  #gradientOf(service: string): GradientFacts | undefined {
    if (this.#gradients.size === 0) return undefined;
    const isOnly = this.#gradients.size === 1 && this.#services.size === 1;
    const named = this.#gradients.get(service);
    const [single] = isOnly ? this.#gradients.values() : [];
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
    const isFirst = this.#lastFlushMs === 0;
    if (coveredMs < 0 && -coveredMs < coveredMsMax) return;
    this.#lastFlushMs = flushMs;
    if (isFirst || coveredMs < 0) return;
    for (const signals of this.#clusters.values()) {
      signals.addCovered(Math.min(coveredMs, coveredMsMax));
    }
  }

  #clusterOf(name: string): ClusterSignals | undefined {
    if (this.#lastName === name) return this.#last;
    this.#last = this.#findCluster(name);
    this.#lastName = this.#last && name;
    return this.#last;
  }

  #findCluster(name: string): ClusterSignals | undefined {
    const known = this.#clusters.get(name);
    if (known !== undefined || this.#clusters.size >= clustersPerNodeMax) return known;
    if (!this.#takeRoom(name)) return undefined;
    const signals = new ClusterSignals();
    this.#clusters.set(name, signals);
    this.#foundBy = undefined;
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

/** A service that an Envoy has clusters for. Reused each second, to leave no garbage. */
interface FollowedService {
  readonly service: string;
  readonly clusters: FollowedCluster[];
  /** The demands of the clusters, in their order. */
  readonly demands: ClusterDemand[];
  /** The undivided share of its only cluster. */
  readonly undivided: Map<string, NodeShare>;
  /** 0: unknown. */
  lastRps: number;
}

interface FollowedCluster {
  readonly cluster: string;
  readonly signals: ClusterSignals;
  readonly demand: OpenDemand;
}

type OpenDemand = { -readonly [field in keyof ClusterDemand]: ClusterDemand[field] };

const noShares: ReadonlyMap<string, NodeShare> = new Map();

/** Adds up what its clusters have reported. */
function fill(
  report: OpenReport,
  followed: FollowedService,
  gradientFacts: GradientFacts | undefined,
): void {
  const { clusters } = followed;
  report.gradientFacts = gradientFacts;
  report.rps = rpsOf(followed);
  report.atMs = Number.NEGATIVE_INFINITY;
  report.inFlight = 0;
  let high: number | undefined = 0;
  report.errorCount = 0;
  report.dropCount = 0;
  report.overflowCount = 0;
  for (const { signals } of clusters) {
    const { atMs, inFlight, highInFlight, errorCount, dropCount, overflowCount } = signals.summary;
    report.atMs = Math.max(report.atMs, atMs);
    report.inFlight += inFlight;
    high = high === undefined || highInFlight === undefined ? undefined : high + highInFlight;
    report.errorCount += errorCount;
    report.dropCount += dropCount;
    report.overflowCount += overflowCount;
  }
  report.highInFlight = high;
  const [first] = clusters;
  const isOnly = first !== undefined && clusters.length === 1;
  setLatency(
    report,
    isOnly
      ? first.signals.summary.latency
      : joinLatencies(clusters.map(({ signals }) => signals.summary.latency)),
  );
}

/** The rate over the reported time. If no time was reported, the previous rate. */
function rpsOf(followed: FollowedService): number {
  let rps = 0;
  let isReported = false;
  for (const { signals } of followed.clusters) {
    const { endedCount, coveredMs } = signals.summary;
    if (coveredMs <= 0) continue;
    isReported = true;
    rps += (endedCount / coveredMs) * 1_000;
  }
  if (isReported) followed.lastRps = rps;
  return followed.lastRps;
}

/** Computed as `core/feedback/feedback-nodes` does for all clusters of a service. */
function setDemand(to: OpenDemand, summary: ClusterSummary): void {
  const { inFlight, highInFlight = 0, overflowCount, endedCount } = summary;
  const demand = Math.max(inFlight, Math.min(1, overflowCount));
  to.demand = demand * (1 + overflowCount / Math.max(1, endedCount));
  to.highDemand = highInFlight;
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
