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

/** What a `ControlPlane` is made of. */
export interface ControlPlaneParts {
  readonly clock: Clock;
  readonly random: Random;
  /** Default `defaultPushTimes`. */
  readonly times?: PushTimes;
  /** Who divides quotas; absent: nobody does. */
  readonly quotas?: Omit<QuotaServiceParts, "streams">;
  /** For whom the certificates of clients may speak. Default none: for whom nobody else speaks. */
  readonly nodeRules?: readonly NodeRule[];
  /** The part of all streams and Envoys that one identity may have, 1 to 100. Default 50. */
  readonly identityPercentMax?: number;
  /** See `NodeRegistryParts.nodesBytesMax`. */
  readonly nodesBytesMax?: number;
  /** Told of every stream that is refused for who its peer is. */
  readonly onRefused?: (fault: OwnerFault, peer: Peer) => void;
}

/** See `ControlPlaneParts.identityPercentMax`. */
export const defaultIdentityPercentMax = 50;

interface SnapshotFacts {
  /** By service, where the fleet's gates stand. */
  readonly gates?: ReadonlyMap<string, GateState>;
  /** When it was made, on our monotonic clock; absent: it does not age. */
  readonly madeAtMs?: number;
}

/** The largest message that is taken: a node has 62 KB, and a flush of 20,000 statistics 2.5 MB. */
export const controlMessageBytesMax = 4_194_304;

/**
 * All that Envoys tell and are told on the control port, without the port: discovery of runtime
 * layers, load reports, statistics. Knows a policy's services and the newest snapshot of shares,
 * and reads neither: they are handed in.
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

  /** What the port serves. */
  get services(): readonly ServiceHandlers[] {
    return this.#services;
  }

  /** The snapshot that layers are made of; undefined: none, or one that is too old. */
  get snapshot(): ShareSnapshot | undefined {
    return this.#snapshot;
  }

  /** Clusters that more than one service of the policy claims, and who. */
  get contestedClusters(): ReadonlyMap<string, readonly string[]> {
    return this.#policy.clusters.contested;
  }

  /** Services whose pins of `adaptive_concurrency` exclude each other: none is sent. */
  get contestedPins(): readonly string[] {
    return this.#policy.plan.contestedPins;
  }

  /** Services that ask for a pin whose minimum is not fixed: none is sent. */
  get unfixedPins(): readonly string[] {
    return unfixedPins(this.#policy.plan);
  }

  /**
   * Services whose limit goes back to Envoys, or comes from them, and of which no Envoy spoke: none
   * here, and none elsewhere, or the snapshot would have shares of it.
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

  /** Another policy is active. */
  usePolicy(services: readonly ServicePolicy[], proxies: ProxyPolicy = defaultProxies): void {
    this.#policy = readPolicy(services, proxies);
    this.registry.forgetUnclaimed();
    this.#xds.update();
  }

  /**
   * Another snapshot holds; undefined: none does. After one that did, configured defaults then hold
   * at once; before the first, Envoys keep what they have for as long as it lives.
   */
  useSnapshot(snapshot: ShareSnapshot | undefined, facts: SnapshotFacts = {}): void {
    this.#snapshot = snapshot;
    this.#facts = snapshot === undefined ? {} : facts;
    if (snapshot !== undefined) this.#hasHadSnapshot = true;
    this.#xds.update();
  }

  /** By waiting room, the percentage of visitors without a ticket that Envoys turn away. */
  useRooms(rejectPercents: ReadonlyMap<string, number>): void {
    const before = this.#roomValues;
    const values = new Map<string, LayerValue>();
    for (const [room, percent] of rejectPercents) values.set(roomRejectKey(room), percent);
    const isSame = [...values].every(([key, value]) => before.get(key) === value);
    if (isSame && values.size === before.size) return;
    this.#roomValues = values;
    this.#xds.update();
  }

  /** What each Envoy did since this was called last; once a second. */
  takeReports(): readonly NodeReport[] {
    const { clusters, teachers } = this.#policy;
    return this.#noteReports(this.registry.takeReports(clusters, (name) => teachers.has(name)));
  }

  /** As `takeReports`, of some Envoys in each turn. */
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

  /** Requests that breakers of Envoys which tell it here refused since the start, by service. */
  get overflowCounts(): ReadonlyMap<string, number> {
    return this.#overflowCounts;
  }

  /** What was taken last. */
  get lastReports(): readonly NodeReport[] {
    return this.#lastReports;
  }

  /** Ends all streams. */
  close(): void {
    this.#streams.closeAll();
  }

  /** Before the first snapshot nobody knows; without one, what holds while there is a Headgate. */
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
    // An Envoy may go by one name in its streams of quotas, and by another one in all others.
    allNamesMax: 2 * nodesMax,
  });
}

function percentOf(percent: number, all: number): number {
  return Math.max(1, Math.floor((all * percent) / 100));
}

const noGates: ReadonlyMap<string, GateState> = new Map();

/**
 * After that long a snapshot may not be what others go by. Until then, and as long as a layer lives
 * from then on, whoever decides counts what it took back from an Envoy as still active; so what
 * is handed out of an older snapshot ends by then, and nobody new is given any of it.
 */
const { snapshotSpreadMs } = defaultLoopTimes;

/** What is looked up of a policy for each Envoy. */
interface ReadPolicy {
  readonly clusters: ServiceClusters;
  readonly plan: LayerPlan;
  /** Services that have something to do with Envoys' numbers or layers. */
  readonly reported: readonly string[];
  /** Services whose law listens to Envoys' statistics. */
  readonly teachers: ReadonlySet<string>;
  /** By service, what an Envoy lets in without a layer: at one priority, and at all. */
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
