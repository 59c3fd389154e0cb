import type { Clock, Random } from "../core/clock.js";
import type { NodeReport, ShareSheet } from "../core/feedback.js";
import { envoyShareDefault } from "../core/feedback-settings.js";
import { indexClusters, type ServiceClusters } from "../policy/service-clusters.js";
import type { ServicePolicy } from "../policy/service-policy.js";
import type { ServiceHandlers } from "../wire/service.js";
import { ControlCounts, ControlStreams } from "./control-stream.js";
import { defaultPushTimes, type PushTimes } from "./layer-pusher.js";
import { createLoadReportingService } from "./load-report.js";
import { createMetricsService } from "./metrics-sink.js";
import { NodeRegistry } from "./node-registry.js";
import { contestedPins, type LayerPlan, layerOf, planLayers } from "./runtime-layers.js";
import { XdsServer } from "./xds-server.js";

/** What a `ControlPlane` is made of. */
export interface ControlPlaneParts {
  readonly clock: Clock;
  readonly random: Random;
  /** What Envoys let into work without a layer of ours. Default `envoyShareDefault`. */
  readonly configuredShare?: (service: string) => number;
  /** Default `defaultPushTimes`. */
  readonly times?: PushTimes;
}

/** The largest message that is taken: a node has 62 KB, and a flush of 20,000 statistics 2.5 MB. */
export const controlMessageBytesMax = 4_194_304;

/**
 * All that Envoys tell and are told on the control port, without the port: discovery of runtime
 * layers, load reports, statistics. Knows a policy's services and the newest sheet of shares, and
 * reads neither: they are handed in.
 */
export class ControlPlane {
  readonly counts = new ControlCounts();
  readonly registry: NodeRegistry;
  readonly #streams: ControlStreams;
  readonly #xds: XdsServer;
  readonly #services: readonly ServiceHandlers[];
  #sheet: ShareSheet | undefined;
  #hasHadSheet = false;
  #policy: ReadPolicy = readPolicy([]);
  #lastReports: readonly NodeReport[] = [];

  constructor({ clock, random, times = defaultPushTimes, ...parts }: ControlPlaneParts) {
    const { configuredShare = () => envoyShareDefault } = parts;
    const nowMs = (): number => clock.monotonicMs();
    this.registry = new NodeRegistry({ nowMs, ttlMs: times.ttlMs, configuredShare });
    this.#streams = new ControlStreams({ registry: this.registry, counts: this.counts, clock });
    this.#xds = new XdsServer({
      streams: this.#streams,
      times,
      layerFor: (nodeId) =>
        this.#hasHadSheet ? layerOf(nodeId, this.#sheet, this.#policy.plan) : undefined,
      nonceStart: random.id(),
    });
    const isClaimed = (cluster: string): boolean =>
      this.#policy.clusters.serviceOf(cluster) !== undefined;
    this.#services = [
      ...this.#xds.services,
      createLoadReportingService({ streams: this.#streams, isClaimed }),
      createMetricsService({ streams: this.#streams, isClaimed }),
    ];
  }

  /** What the port serves. */
  get services(): readonly ServiceHandlers[] {
    return this.#services;
  }

  /** The sheet that layers are made of; undefined: none, or one that is too old. */
  get sheet(): ShareSheet | undefined {
    return this.#sheet;
  }

  /** Clusters that more than one service of the policy claims, and who. */
  get contestedClusters(): ReadonlyMap<string, readonly string[]> {
    return this.#policy.clusters.contested;
  }

  /** Services whose pins of `adaptive_concurrency` exclude each other: none is sent. */
  get contestedPins(): readonly string[] {
    return contestedPins(this.#policy.plan);
  }

  /** Services whose limit goes back to Envoys, or comes from them, and of which no Envoy spoke. */
  unseenServices(): readonly string[] {
    const seen = new Set<string>();
    for (const node of this.registry.nodes) {
      for (const [cluster] of node.signals.clusters()) {
        const service = this.#policy.clusters.serviceOf(cluster);
        if (service !== undefined) seen.add(service);
      }
    }
    return this.#policy.told.filter((name) => !seen.has(name));
  }

  /** Another policy is in force. */
  usePolicy(services: readonly ServicePolicy[]): void {
    this.#policy = readPolicy(services);
    this.registry.forgetUnclaimed();
    this.#xds.update();
  }

  /**
   * Another sheet holds; undefined: none does. After one that did, configured defaults then hold at
   * once; before the first, Envoys keep what they have for as long as it lives.
   */
  useSheet(sheet: ShareSheet | undefined): void {
    this.#sheet = sheet;
    if (sheet !== undefined) this.#hasHadSheet = true;
    this.#xds.update();
  }

  /** What each Envoy did since this was called last; once a second. */
  takeReports(): readonly NodeReport[] {
    const { clusters, teachers } = this.#policy;
    this.#lastReports = this.registry.takeReports(clusters, (service) => teachers.has(service));
    return this.#lastReports;
  }

  /** What was taken last. */
  get lastReports(): readonly NodeReport[] {
    return this.#lastReports;
  }

  /** Ends all streams. */
  close(): void {
    this.#streams.closeAll();
  }
}

/** What is looked up of a policy for each Envoy. */
interface ReadPolicy {
  readonly clusters: ServiceClusters;
  readonly plan: LayerPlan;
  /** Services that have something to do with Envoys' numbers or layers. */
  readonly told: readonly string[];
  /** Services whose law listens to Envoys' statistics. */
  readonly teachers: ReadonlySet<string>;
}

function readPolicy(services: readonly ServicePolicy[]): ReadPolicy {
  const clusters = indexClusters(services);
  const told = services.filter(
    ({ concurrency }) =>
      concurrency !== undefined &&
      (concurrency.feedback.length > 0 || concurrency.sources.some((one) => one !== "extProc")),
  );
  const teachers = services.filter(
    ({ concurrency }) => concurrency?.sources.includes("envoyMetrics") === true,
  );
  return {
    clusters,
    plan: planLayers(services, clusters),
    told: told.map(({ name }) => name),
    teachers: new Set(teachers.map(({ name }) => name)),
  };
}
