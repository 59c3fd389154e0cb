import type { NodeReport } from "../../core/feedback/feedback.js";
import { breakerKey } from "../../core/feedback/runtime-keys.js";
import type { ServiceClusters } from "../../policy/services/service-clusters.js";
import { LayerLedger, type LayerLedgerParts } from "./layer-ledger.js";
import { isKnownVersion, type NodeIdentity } from "./node-identity.js";
import { NodeRoom, NodeSignals } from "./node-signals.js";

/** What an Envoy opens streams for; it has one of each at a time. */
export const streamClaims = ["layers", "loadReports", "metrics"] as const;

/** A row of `streamClaims`. */
export type StreamClaim = (typeof streamClaims)[number];

/** Envoys that are known at once. */
export const nodesMax = 10_000;

/** Bytes of an Envoy beside its clusters, with its streams, about. */
const nodeBytes = 8_192;

/** How long an Envoy is known after it was heard of last, in milliseconds. */
export const forgottenAfterMs = 60_000;

/** Streams of one kind that may take each other over within `takeoverWindowMs`. */
export const takeoversMax = 3;

/** Time in which take-overs are counted, in milliseconds. */
export const takeoverWindowMs = 60_000;

/** An Envoy, as its streams have made it known. */
export interface Node {
  readonly id: string;
  readonly ledger: LayerLedger;
  readonly signals: NodeSignals;
  identity: NodeIdentity;
  /** The identity in the certificate of who speaks for it; undefined: there is none. */
  owner: string | undefined;
  /** When it was met, and when it was heard of last, on our monotonic clock. */
  readonly metAtMs: number;
  heardAtMs: number;
  /** Why it refused the last layer that it answered, in its own words; undefined: it took it. */
  refusal: string | undefined;
  /** Who holds each kind of stream, to be told when another one takes it over. */
  readonly claims: Map<StreamClaim, () => void>;
  /** Times of take-overs, the newest last. */
  takeoversMs: readonly number[];
}

/** What a `NodeRegistry` is made of. */
export interface NodeRegistryParts extends LayerLedgerParts {
  readonly nowMs: () => number;
  /** What an Envoy's breaker at HIGH holds without a layer, by its configuration. */
  readonly configuredHigh?: (service: string) => number;
  /** The most bytes of Envoys and their clusters, about. Default: no bound. */
  readonly nodesBytesMax?: number;
}

/** Clusters without a service whose names are kept, for people. */
export const unclaimedClustersMax = 200;

/** The longest name of such a cluster, in characters; longer ones are cut. */
export const clusterNameCharsMax = 256;

/** The Envoys that have streams here, or had them a moment ago. */
export class NodeRegistry {
  readonly #parts: NodeRegistryParts;
  readonly #nodes = new Map<string, Node>();
  readonly #room: NodeRoom;
  readonly #unclaimed = new Set<string>();
  #forgottenIgnoredCount = 0;

  constructor(parts: NodeRegistryParts) {
    this.#parts = parts;
    this.#room = new NodeRoom(parts.nodesBytesMax ?? Number.POSITIVE_INFINITY);
  }

  /** In the order in which they were first heard of. */
  get nodes(): Iterable<Node> {
    return this.#nodes.values();
  }

  get nodeCount(): number {
    return this.#nodes.size;
  }

  /** The Envoy of that name; undefined: it is not known here. */
  find(id: string): Node | undefined {
    return this.#nodes.get(id);
  }

  /** Numbers that came twice, too late or beyond a bound, since the start. */
  get ignoredCount(): number {
    let count = this.#forgottenIgnoredCount;
    for (const { signals } of this.#nodes.values()) count += signals.ignoredCount;
    return count;
  }

  /** Names of clusters that lead to no service, as far as they are kept. */
  get unclaimedClusters(): ReadonlySet<string> {
    return this.#unclaimed;
  }

  /** The Envoy of that name; undefined when there is no room for one more. */
  meet(identity: NodeIdentity, owner?: string): Node | undefined {
    const nowMs = this.#parts.nowMs();
    const known = this.#nodes.get(identity.id);
    if (known !== undefined) {
      known.identity = identity;
      known.owner = owner;
      known.heardAtMs = nowMs;
      return known;
    }
    if (this.#nodes.size >= nodesMax) this.forgetSilent();
    if (this.#nodes.size >= nodesMax || !this.#room.take(nodeBytes)) return undefined;
    const { ttlMs, configuredShare } = this.#parts;
    const signals = new NodeSignals(this.#room);
    const node: Node = {
      id: identity.id,
      identity,
      owner,
      // Each of its clusters has a breaker of its own, and so that much of its own.
      ledger: new LayerLedger({
        ttlMs,
        configuredShare: (service) => configuredShare(service) * signals.clusterCount(service),
      }),
      signals,
      metAtMs: nowMs,
      heardAtMs: nowMs,
      refusal: undefined,
      claims: new Map(),
      takeoversMs: [],
    };
    this.#nodes.set(node.id, node);
    return node;
  }

  /**
   * A stream becomes the one of its kind: the one before is told, and ends. It may be that its
   * connection is lost and nobody has noticed; or that two Envoys have one name.
   */
  claim(node: Node, claim: StreamClaim, onTakenOver: () => void): void {
    const nowMs = this.#parts.nowMs();
    const former = node.claims.get(claim);
    node.claims.set(claim, onTakenOver);
    if (claim === "metrics") node.signals.beginMetrics();
    if (former === undefined) return;
    if (claim === "layers") node.ledger.noteStreamEnded(nowMs);
    const recent = node.takeoversMs.filter((atMs) => nowMs - atMs < takeoverWindowMs);
    node.takeoversMs = [...recent, nowMs].slice(-takeoversMax);
    former();
  }

  /** A stream has ended; nothing, when another one has taken it over. */
  release(node: Node, claim: StreamClaim, onTakenOver: () => void): void {
    if (node.claims.get(claim) !== onTakenOver) return;
    node.claims.delete(claim);
    if (claim === "layers") node.ledger.noteStreamEnded(this.#parts.nowMs());
  }

  /** Something came from it. */
  noteHeard(node: Node): void {
    node.heardAtMs = this.#parts.nowMs();
  }

  /** An Envoy has a cluster that leads to no service. */
  noteUnclaimed(cluster: string): void {
    if (this.#unclaimed.size >= unclaimedClustersMax) return;
    this.#unclaimed.add(cluster.slice(0, clusterNameCharsMax));
  }

  /** Another policy: what it does not claim shows anew. */
  forgetUnclaimed(): void {
    this.#unclaimed.clear();
  }

  /** Forgets who has no stream and was not heard of for `forgottenAfterMs`. */
  forgetSilent(): void {
    const nowMs = this.#parts.nowMs();
    for (const node of this.#nodes.values()) {
      if (node.claims.size === 0 && nowMs - node.heardAtMs >= forgottenAfterMs) {
        this.#forgottenIgnoredCount += node.signals.ignoredCount;
        node.signals.close();
        this.#room.giveBack(nodeBytes);
        this.#nodes.delete(node.id);
      }
    }
  }

  /**
   * What each Envoy did since this was called last, by service; to be called once a second. One
   * whose `atMs` has not moved repeats what is in work, and has counted nothing. An Envoy that has
   * layers from here and tells its numbers to another replica is told of with numbers that are
   * `forgottenAfterMs` old.
   *
   * @param teaches whether a service's latencies are listened to
   */
  takeReports(
    clusters: ServiceClusters,
    teaches: (service: string) => boolean,
  ): readonly NodeReport[] {
    this.forgetSilent();
    const nowMs = this.#parts.nowMs();
    const { configuredHigh = () => undefined } = this.#parts;
    return [...this.#nodes.values()].flatMap((node) =>
      reportsOf(node, { clusters, teaches, configuredHigh, nowMs }),
    );
  }
}

/** Whether two streams of one kind have come and gone as two Envoys of one name make them. */
export function isNameShared({ takeoversMs }: Node, nowMs: number): boolean {
  const [oldestMs = Number.NEGATIVE_INFINITY] = takeoversMs;
  return takeoversMs.length >= takeoversMax && nowMs - oldestMs < takeoverWindowMs;
}

/** What is wrong with single Envoys, as metrics and `/debug/fleet` name it. */
export const nodeProblems = [
  "name_shared",
  "other_version",
  "layer_refused",
  "no_layer_stream",
  "no_numbers",
] as const;

/** A row of `nodeProblems`. */
export type NodeProblem = (typeof nodeProblems)[number];

/** How long an Envoy that was just met may leave streams out, in milliseconds. */
export const settlingMs = 10_000;

/** What is wrong with one Envoy. */
export function problemsOf(node: Node, nowMs: number): readonly NodeProblem[] {
  const { claims, identity, metAtMs, refusal } = node;
  const hasLayers = claims.has("layers");
  const hasNumbers = claims.has("metrics") || claims.has("loadReports");
  const isSettled = nowMs - metAtMs >= settlingMs;
  const found: Record<NodeProblem, boolean> = {
    name_shared: isNameShared(node, nowMs),
    other_version: !isKnownVersion(identity),
    layer_refused: refusal !== undefined,
    no_layer_stream: hasNumbers && !hasLayers && isSettled,
    no_numbers: hasLayers && !hasNumbers && isSettled,
  };
  return nodeProblems.filter((problem) => found[problem]);
}

interface ReportTerms {
  readonly clusters: ServiceClusters;
  readonly teaches: (service: string) => boolean;
  readonly configuredHigh: (service: string) => number | undefined;
  readonly nowMs: number;
}

function reportsOf(node: Node, terms: ReportTerms): readonly NodeReport[] {
  const { clusters, teaches, configuredHigh, nowMs } = terms;
  const { id: nodeId, owner, signals, ledger, identity: at } = node;
  // What its breakers hold is known here alone where it has its layers from here.
  const values = node.claims.has("layers") ? ledger.activeValues(nowMs) : undefined;
  const highThresholdOf = (cluster: string, service: string): number | undefined => {
    if (values === undefined) return undefined;
    const sent = values.get(breakerKey(cluster, "high", "max_requests"));
    return typeof sent === "number" ? sent : configuredHigh(service);
  };
  const reported = signals.take(clusters, nowMs, { at, highThresholdOf });
  const knownAtMs = heldAtMs(ledger, nowMs);
  // Each field by its name: copies of what is left of an object were half of the cost.
  const reports = reported.map((one): NodeReport => {
    const { service, gradientFacts, highInFlight } = one;
    const report: NodeReport = {
      nodeId,
      owner,
      service,
      atMs: one.atMs,
      inFlight: one.inFlight,
      rps: one.rps,
      latency: teaches(service) ? one.latency : noLatency,
      errorCount: one.errorCount,
      dropCount: one.dropCount,
      overflowCount: one.overflowCount,
      held: ledger.held(service, nowMs),
      heldAtMs: knownAtMs,
    };
    if (highInFlight === undefined && gradientFacts === undefined) return report;
    return {
      ...report,
      ...(highInFlight === undefined ? {} : { highInFlight }),
      ...(gradientFacts === undefined ? {} : { gradientFacts }),
    };
  });
  const spoken = new Set(reported.map(({ service }) => service));
  for (const service of ledger.services(nowMs)) {
    if (!spoken.has(service)) reports.push(silentReport(node, service, nowMs));
  }
  return reports;
}

const noLatency = { count: 0, sumMs: 0 } as const;

/** Not longer ago than anybody is remembered. */
function heldAtMs(ledger: LayerLedger, nowMs: number): number {
  return Math.max(ledger.heldAtMs(nowMs), nowMs - forgottenAfterMs);
}

/** Of an Envoy that has a share from here, and tells its numbers elsewhere or nowhere. */
function silentReport(node: Node, service: string, nowMs: number): NodeReport {
  const { id: nodeId, owner, ledger } = node;
  return {
    nodeId,
    owner,
    service,
    atMs: nowMs - forgottenAfterMs,
    inFlight: 0,
    rps: 0,
    latency: noLatency,
    errorCount: 0,
    dropCount: 0,
    overflowCount: 0,
    held: ledger.held(service, nowMs),
    heldAtMs: heldAtMs(ledger, nowMs),
  };
}
