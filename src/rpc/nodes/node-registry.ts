import type { NodeLatency, NodeReport } from "../../core/feedback/feedback.js";
import { breakerKey } from "../../core/feedback/runtime-keys.js";
import type { ServiceClusters } from "../../policy/services/service-clusters.js";
import { LayerLedger, type LayerLedgerParts } from "./layer-ledger.js";
import { isKnownVersion, type NodeIdentity } from "./node-identity.js";
import { NodeRoom, NodeSignals } from "./node-signals.js";
import { setLatency } from "./open-report.js";

/** The streams that an Envoy opens, one of each kind at a time. */
export const streamClaims = ["layers", "loadReports", "metrics"] as const;

/** An element of `streamClaims`. */
export type StreamClaim = (typeof streamClaims)[number];

/** Maximum number of known Envoys. */
export const nodesMax = 10_000;

/** Approximate memory for an Envoy and its streams, without its clusters, in bytes. */
const nodeBytes = 8_192;

/** How long an Envoy is remembered after its last message, in milliseconds. */
export const forgottenAfterMs = 60_000;

/** How often a stream may replace another of its kind within `takeoverWindowMs`. */
export const takeoversMax = 3;

/** The window in which takeovers are counted, in milliseconds. */
export const takeoverWindowMs = 60_000;

/** An Envoy, as known from its streams. */
export interface Node {
  readonly id: string;
  readonly ledger: LayerLedger;
  readonly signals: NodeSignals;
  identity: NodeIdentity;
  /** The identity in the certificate of its peer. Undefined without a certificate. */
  owner: string | undefined;
  /** The times of its first and last message, on our monotonic clock. */
  readonly metAtMs: number;
  heardAtMs: number;
  /** Its error message for the last rejected layer. Undefined if the layer was accepted. */
  refusal: string | undefined;
  /** The owner of each kind of stream, called when another stream takes it over. */
  readonly claims: Map<StreamClaim, () => void>;
  /** Times of takeovers, the latest last. */
  takeoversMs: readonly number[];
}

/** The dependencies of a `NodeRegistry`. */
export interface NodeRegistryParts extends LayerLedgerParts {
  readonly nowMs: () => number;
  /** The threshold of an Envoy's HIGH breaker without a layer, by its configuration. */
  readonly configuredHigh?: (service: string) => number;
  /** Approximate maximum memory for Envoys and their clusters, in bytes. Default: unlimited. */
  readonly nodesBytesMax?: number;
}

/** Reports that are taken in one turn of the event loop: about a millisecond. */
export const reportsPerTurn = 500;

/** Maximum number of clusters whose runtime keys are kept. Then the cache is cleared. */
const highKeysMax = 10_000;

/** Maximum number of names of clusters without a service that are kept for display. */
export const unclaimedClustersMax = 200;

/** Maximum length of such a name, in characters. Longer ones are truncated. */
export const clusterNameCharsMax = 256;

/** The Envoys that have streams here, or had them recently. */
export class NodeRegistry {
  readonly #parts: NodeRegistryParts;
  readonly #nodes = new Map<string, Node>();
  readonly #room: NodeRoom;
  readonly #unclaimed = new Set<string>();
  /** The runtime key of each cluster's breaker at HIGH. */
  readonly #highKeys = new Map<string, string>();
  #forgottenIgnoredCount = 0;

  constructor(parts: NodeRegistryParts) {
    this.#parts = parts;
    this.#room = new NodeRoom(parts.nodesBytesMax ?? Number.POSITIVE_INFINITY);
  }

  /** In the order of their first message. */
  get nodes(): Iterable<Node> {
    return this.#nodes.values();
  }

  get nodeCount(): number {
    return this.#nodes.size;
  }

  /** Returns the Envoy with this name. Undefined if it is not known here. */
  find(id: string): Node | undefined {
    return this.#nodes.get(id);
  }

  /** Samples that were duplicate, too late or beyond a bound, since the start. */
  get ignoredCount(): number {
    let count = this.#forgottenIgnoredCount;
    for (const { signals } of this.#nodes.values()) count += signals.ignoredCount;
    return count;
  }

  /** Names of clusters that belong to no service, as far as they are kept. */
  get unclaimedClusters(): ReadonlySet<string> {
    return this.#unclaimed;
  }

  /** Returns the Envoy with this name, and adds it if needed. Undefined if there are too many. */
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
      // Each of its clusters has its own circuit breaker, and so its own configured limit.
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
   * Makes a stream the only one of its kind. The previous one is notified and ends. Either its
   * connection was lost unnoticed, or two Envoys have the same name.
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

  /** A stream has ended. No effect if another one has taken it over. */
  release(node: Node, claim: StreamClaim, onTakenOver: () => void): void {
    if (node.claims.get(claim) !== onTakenOver) return;
    node.claims.delete(claim);
    if (claim === "layers") node.ledger.noteStreamEnded(this.#parts.nowMs());
  }

  /** A message of the Envoy was received. */
  noteHeard(node: Node): void {
    node.heardAtMs = this.#parts.nowMs();
  }

  /** An Envoy has a cluster that belongs to no service. */
  noteUnclaimed(cluster: string): void {
    if (this.#unclaimed.size >= unclaimedClustersMax) return;
    this.#unclaimed.add(cluster.slice(0, clusterNameCharsMax));
  }

  /** Clears these names after a policy change. */
  forgetUnclaimed(): void {
    this.#unclaimed.clear();
  }

  /** Forgets Envoys without a stream and without a message for `forgottenAfterMs`. */
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
   * Returns what each Envoy did since the last call, by service. Called once per second. A report
   * with an unchanged `atMs` repeats what is in flight and counts nothing. An Envoy that gets
   * layers from here but reports to another replica is included with values that are
   * `forgottenAfterMs` old. A report is valid until the call after the next one.
   *
   * @param teaches whether the latencies of a service are used
   */
  takeReports(
    clusters: ServiceClusters,
    teaches: (service: string) => boolean,
  ): readonly NodeReport[] {
    const turns = this.takeReportsInTurns(clusters, teaches);
    for (;;) {
      const { done, value } = turns.next();
      if (done === true) return value;
    }
  }

  /** Like `takeReports`, with some Envoys per turn, so that other work does not wait for all. */
  *takeReportsInTurns(
    clusters: ServiceClusters,
    teaches: (service: string) => boolean,
  ): Generator<undefined, readonly NodeReport[]> {
    this.forgetSilent();
    const { nowMs, configuredHigh = () => undefined } = this.#parts;
    const highKeyOf = (cluster: string): string => this.#highKeyOf(cluster);
    const reports: NodeReport[] = [];
    let turnEnd = reportsPerTurn;
    for (const node of this.#nodes.values()) {
      const terms = { clusters, teaches, configuredHigh, highKeyOf, nowMs: nowMs() };
      addReports(reports, node, terms);
      if (reports.length < turnEnd) continue;
      turnEnd = reports.length + reportsPerTurn;
      yield;
    }
    return reports;
  }

  #highKeyOf(cluster: string): string {
    const known = this.#highKeys.get(cluster);
    if (known !== undefined) return known;
    if (this.#highKeys.size >= highKeysMax) this.#highKeys.clear();
    const key = breakerKey(cluster, "high", "max_requests");
    this.#highKeys.set(cluster, key);
    return key;
  }
}

/** Whether the takeovers of a stream suggest that two Envoys have the same name. */
export function isNameShared({ takeoversMs }: Node, nowMs: number): boolean {
  const [oldestMs = Number.NEGATIVE_INFINITY] = takeoversMs;
  return takeoversMs.length >= takeoversMax && nowMs - oldestMs < takeoverWindowMs;
}

/** Problems of single Envoys, as label values of metrics and in `/debug/fleet`. */
export const nodeProblems = [
  "name_shared",
  "other_version",
  "layer_refused",
  "no_layer_stream",
  "no_numbers",
] as const;

/** An element of `nodeProblems`. */
export type NodeProblem = (typeof nodeProblems)[number];

/** How long a new Envoy may take to open its streams, in milliseconds. */
export const settlingMs = 10_000;

/** Returns the problems of one Envoy. */
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
  readonly highKeyOf: (cluster: string) => string;
  readonly nowMs: number;
}

function addReports(to: NodeReport[], node: Node, terms: ReportTerms): void {
  const { clusters, teaches, configuredHigh, highKeyOf, nowMs } = terms;
  const { id: nodeId, owner, signals, ledger, identity: at } = node;
  // The thresholds of its breakers are only known if it gets its layers from here.
  const values = node.claims.has("layers") ? ledger.activeValues(nowMs) : undefined;
  const highThresholdOf = (cluster: string, service: string): number | undefined => {
    if (values === undefined) return undefined;
    const sent = values.get(highKeyOf(cluster));
    return typeof sent === "number" ? sent : configuredHigh(service);
  };
  const knownAtMs = heldAtMs(ledger, nowMs);
  for (const report of signals.take(clusters, nowMs, { at, highThresholdOf })) {
    const { service } = report;
    report.nodeId = nodeId;
    report.owner = owner;
    if (!teaches(service)) setLatency(report, noLatency);
    report.held = ledger.held(service, nowMs);
    report.heldAtMs = knownAtMs;
    to.push(report);
  }
  for (const service of ledger.services(nowMs)) {
    if (!signals.reports(service)) to.push(silentReport(node, service, nowMs));
  }
}

const noLatency: NodeLatency = { count: 0, sumMs: 0 };

/** At most as long ago as an Envoy is remembered. */
function heldAtMs(ledger: LayerLedger, nowMs: number): number {
  return Math.max(ledger.heldAtMs(nowMs), nowMs - forgottenAfterMs);
}

/** The report for an Envoy that has a share from here and reports elsewhere or not at all. */
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
