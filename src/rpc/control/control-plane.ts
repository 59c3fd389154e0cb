import type { GateState } from "../../core/admission/gate.js";
import type { Clock, Random } from "../../core/base/clock.js";
import type { Peer } from "../../core/base/peer.js";
import type { NodeReport, ShareSnapshot } from "../../core/feedback/feedback.js";
import { defaultLoopTimes } from "../../core/feedback/feedback-settings.js";
import { roomRejectKey } from "../../core/feedback/runtime-keys.js";
import { defaultProxies } from "../../policy/proxies/default-proxies.js";
import type { ProxyPolicy } from "../../policy/proxies/proxies.js";
import { configuredRequestsMax, configuredShare } from "../../policy/services/configured-share.js";
import {
  indexClusters,
  type ProxyGroup,
  type ServiceClusters,
} from "../../policy/services/service-clusters.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { ServiceHandlers } from "../../wire/grpc/service.js";
import { ControlCounts, ControlStreams, controlStreamsMax } from "../nodes/control-stream.js";
import type { LayerValue, NodeLayer } from "../nodes/layer-ledger.js";
import { LayerBuilder } from "../nodes/layer-values.js";
import { createLoadReportingService } from "../nodes/load-report.js";
import { createMetricsService } from "../nodes/metrics-sink.js";
import { type Node, NodeRegistry, nodesMax } from "../nodes/node-registry.js";
import type { NodeRule } from "../nodes/node-rules.js";
import { type OwnerFault, StreamOwners } from "../nodes/stream-owners.js";
import { type LayerPlan, planLayers, unfixedPins } from "./layer-plan.js";
import { defaultPushTimes, type PushTimes } from "./layer-pusher.js";
import { createQuotaService, type QuotaServiceParts } from "./quota-stream.js";
import { bareLayer, layerOf } from "./runtime-layers.js";
import { XdsServer } from "./xds-server.js";

/** Dependencies and settings of a `ControlPlane`. */
export interface ControlPlaneParts {
  readonly clock: Clock;
  readonly random: Random;
  /** Default `defaultPushTimes`. */
  readonly times?: PushTimes;
  /** Divides quotas. Absent: quotas are not served. */
  readonly quotas?: Omit<QuotaServiceParts, "streams">;
  /** Which nodes client certificates may act as. Default: any that no other client acts as. */
  readonly nodeRules?: readonly NodeRule[];
  /** The percentage of all streams and Envoys for one identity, 1 to 100. Default 50. */
  readonly identityPercentMax?: number;
  /** See `NodeRegistryParts.nodesBytesMax`. */
  readonly nodesBytesMax?: number;
  /** Called for every stream that is refused because of its peer. */
  readonly onRefused?: (fault: OwnerFault, peer: Peer) => void;
}

/** See `ControlPlaneParts.identityPercentMax`. */
export const defaultIdentityPercentMax = 50;

interface SnapshotFacts {
  /** The states of the fleet's gates, by service. */
  readonly gates?: ReadonlyMap<string, GateState>;
  /** When it was created, on our monotonic clock. Absent: it does not age. */
  readonly madeAtMs?: number;
}

/** Maximum message size: a node has 62 KB, and a flush of 20,000 statistics 2.5 MB. */
export const controlMessageBytesMax = 4_194_304;

/**
 * Everything that Envoys send and receive on the control port, without the port itself: discovery
 * of runtime layers, load reports, statistics. Uses a policy's services and the newest snapshot of
 * shares, but loads neither: its owner passes them in.
 */
export class ControlPlane {
  readonly counts = new ControlCounts();
  readonly registry: NodeRegistry;
  readonly #streams: ControlStreams;
  readonly #xds: XdsServer;
  readonly #services: readonly ServiceHandlers[];
  #snapshot: ShareSnapshot | undefined;
  #facts: SnapshotFacts = {};
  #hasHadSnapshot = false;
  #policy: ReadPolicy = readPolicy([], defaultProxies);
  #roomValues: ReadonlyMap<string, LayerValue> = new Map();
  #lastReports: readonly NodeReport[] = [];
  readonly #overflowCounts = new Map<string, number>();

  constructor(parts: ControlPlaneParts) {
    const { clock, random, times = defaultPushTimes, quotas, onRefused, nodesBytesMax } = parts;
    const { ttlMs } = times;
    this.registry = new NodeRegistry({
      nowMs: () => clock.monotonicMs(),
      ttlMs,
      configuredShare: (service) => this.#policy.configured.get(service)?.share ?? 0,
      configuredHigh: (service) => this.#policy.configured.get(service)?.max ?? 0,
      ...(nodesBytesMax === undefined ? {} : { nodesBytesMax }),
    });
    this.#streams = new ControlStreams({
      registry: this.registry,
      owners: createOwners(parts),
      counts: this.counts,
      clock,
      ...(onRefused === undefined ? {} : { onRefused }),
    });
    this.#xds = new XdsServer({
      streams: this.#streams,
      times,
      source: {
        layerFor: (node) => this.#layerFor(node, ttlMs),
        bareLayer: () => this.#withRooms(bareLayer(this.#policy.plan)),
        isOld: (nowMs) => nowMs - (this.#facts.madeAtMs ?? nowMs) > snapshotSpreadMs,
      },
      nonceStart: random.id(),
    });
    const isClaimed = (cluster: string, at: ProxyGroup): boolean =>
      this.#policy.clusters.serviceOf(cluster, at) !== undefined;
    this.#services = [
      ...this.#xds.services,
      createLoadReportingService({ streams: this.#streams, isClaimed }),
      createMetricsService({ streams: this.#streams, isClaimed }),
      ...(quotas === undefined ? [] : [createQuotaService({ streams: this.#streams, ...quotas })]),
    ];
  }

  /** The services of the port. */
  get services(): readonly ServiceHandlers[] {
    return this.#services;
  }

  /** The snapshot that layers are created from. Undefined: none, or one that is too old. */
  get snapshot(): ShareSnapshot | undefined {
    return this.#snapshot;
  }

  /** Clusters that more than one service of the policy claims, with these services. */
  get contestedClusters(): ReadonlyMap<string, readonly string[]> {
    return this.#policy.clusters.contested;
  }

  /** Services whose pins of `adaptive_concurrency` conflict, so that none is sent. */
  get contestedPins(): readonly string[] {
    return this.#policy.plan.contestedPins;
  }

  /** Services that request a pin without a fixed minimum, so that none is sent. */
  get unfixedPins(): readonly string[] {
    return unfixedPins(this.#policy.plan);
  }

  /**
   * Returns the services whose limit is sent to Envoys, or learned from them, but that no Envoy has
   * reported: neither here, nor elsewhere, because then the snapshot would have shares of it.
   */
  unseenServices(): readonly string[] {
    const seen = new Set<string>(this.#snapshot?.services.keys());
    for (const node of this.registry.nodes) {
      for (const [cluster] of node.signals.clusters()) {
        const service = this.#policy.clusters.serviceOf(cluster, node.identity);
        if (service !== undefined) seen.add(service);
      }
    }
    return this.#policy.reported.filter((name) => !seen.has(name));
  }

  /** Switches to another active policy. */
  usePolicy(services: readonly ServicePolicy[], proxies: ProxyPolicy = defaultProxies): void {
    this.#policy = readPolicy(services, proxies);
    this.registry.forgetUnclaimed();
    this.#xds.update();
  }

  /**
   * Switches to another snapshot; undefined: to none. Configured defaults then apply at once, but
   * before the first snapshot, Envoys keep their layers until these expire.
   */
  useSnapshot(snapshot: ShareSnapshot | undefined, facts: SnapshotFacts = {}): void {
    this.#snapshot = snapshot;
    this.#facts = snapshot === undefined ? {} : facts;
    if (snapshot !== undefined) this.#hasHadSnapshot = true;
    this.#xds.update();
  }

  /** Sets the percentage of visitors without a ticket that Envoys reject, by waiting room. */
  useRooms(rejectPercents: ReadonlyMap<string, number>): void {
    const before = this.#roomValues;
    const values = new Map<string, LayerValue>();
    for (const [room, percent] of rejectPercents) values.set(roomRejectKey(room), percent);
    const isSame = [...values].every(([key, value]) => before.get(key) === value);
    if (isSame && values.size === before.size) return;
    this.#roomValues = values;
    this.#xds.update();
  }

  /** Returns what each Envoy did since the last call. Called once per second. */
  takeReports(): readonly NodeReport[] {
    const { clusters, teachers } = this.#policy;
    return this.#noteReports(this.registry.takeReports(clusters, (name) => teachers.has(name)));
  }

  /** Like `takeReports`, with some Envoys per turn. */
  *takeReportsInTurns(): Generator<undefined, readonly NodeReport[]> {
    const { clusters, teachers } = this.#policy;
    const turns = this.registry.takeReportsInTurns(clusters, (name) => teachers.has(name));
    return this.#noteReports(yield* turns);
  }

  #noteReports(reports: readonly NodeReport[]): readonly NodeReport[] {
    this.#lastReports = reports;
    for (const { service, overflowCount } of reports) {
      const known = this.#overflowCounts.get(service) ?? 0;
      this.#overflowCounts.set(service, known + overflowCount);
    }
    return reports;
  }

  /** Requests that breakers of Envoys reporting here have refused since the start, by service. */
  get overflowCounts(): ReadonlyMap<string, number> {
    return this.#overflowCounts;
  }

  /** The reports that were taken last. */
  get lastReports(): readonly NodeReport[] {
    return this.#lastReports;
  }

  /** Ends all streams. */
  close(): void {
    this.#streams.closeAll();
  }

  /** Undefined before the first snapshot, if one is needed. Later without one, the bare layer. */
  #layerFor(node: Node, ttlMs: number): NodeLayer | undefined {
    const { plan } = this.#policy;
    const snapshot = this.#snapshot;
    const { gates = noGates, madeAtMs } = this.#facts;
    if (snapshot === undefined) {
      const isKnown = this.#hasHadSnapshot || !plan.needsSnapshot;
      return isKnown ? this.#withRooms(bareLayer(plan)) : undefined;
    }
    const untilMs = madeAtMs === undefined ? undefined : madeAtMs + snapshotSpreadMs + ttlMs;
    const layer = layerOf(node, { snapshot, gates, untilMs }, plan);
    return this.#withRooms(layer, node.ledger.sentLayer?.values);
  }

  #withRooms(layer: NodeLayer, likely?: NodeLayer["values"]): NodeLayer {
    if (this.#roomValues.size === 0) return layer;
    const values = new LayerBuilder(likely);
    for (const [key, value] of layer.values) values.set(key, value);
    for (const [key, value] of this.#roomValues) values.set(key, value);
    return { ...layer, values: values.finish() };
  }
}

function createOwners({
  clock,
  nodeRules: rules = [],
  identityPercentMax: percent = defaultIdentityPercentMax,
}: ControlPlaneParts): StreamOwners {
  return new StreamOwners({
    nowMs: () => clock.monotonicMs(),
    rules,
    streamsMax: percentOf(percent, controlStreamsMax),
    namesMax: percentOf(percent, nodesMax),
    // An Envoy may use one name in its quota streams, and another one in all others.
    allNamesMax: 2 * nodesMax,
  });
}

function percentOf(percent: number, all: number): number {
  return Math.max(1, Math.floor((all * percent) / 100));
}

const noGates: ReadonlyMap<string, GateState> = new Map();

/**
 * The age at which a snapshot may no longer be the one that others use. Until then, and for the ttl
 * of a layer from then on, the leader counts what it took back from an Envoy as still active. So
 * layers of an older snapshot expire by then, and no other Envoy gets one.
 */
const { snapshotSpreadMs } = defaultLoopTimes;

/** The parts of a policy that are looked up for each Envoy. */
interface ReadPolicy {
  readonly clusters: ServiceClusters;
  readonly plan: LayerPlan;
  /** Services that use Envoys' reports or layers. */
  readonly reported: readonly string[];
  /** Services whose algorithm uses Envoys' statistics. */
  readonly teachers: ReadonlySet<string>;
  /** What an Envoy admits without a layer, by service: at one priority, and in total. */
  readonly configured: ReadonlyMap<string, { readonly max: number; readonly share: number }>;
}

function readPolicy(services: readonly ServicePolicy[], proxies: ProxyPolicy): ReadPolicy {
  const clusters = indexClusters(services);
  const reported = services.filter(
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
    reported: reported.map(({ name }) => name),
    teachers: new Set(teachers.map(({ name }) => name)),
    configured: new Map(
      services.map((service) => [
        service.name,
        {
          max: configuredRequestsMax(service, proxies),
          share: configuredShare(service, proxies),
        },
      ]),
    ),
  };
}
