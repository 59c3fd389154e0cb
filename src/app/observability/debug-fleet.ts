import type { NodeReport, ServiceShares } from "../../core/feedback/feedback.js";
import type { Lender } from "../../fleet/regions/lender.js";
import type { ControlPlane } from "../../rpc/control/control-plane.js";
import { type Node, problemsOf } from "../../rpc/nodes/node-registry.js";
import type { FleetLoopStatus } from "../fleet/fleet-loop.js";

/** Sources of the page. */
export interface FleetPageParts {
  readonly plane: ControlPlane;
  /** The loop of the fleet. Absent if this process has none. */
  readonly loop?: () => FleetLoopStatus | undefined;
  /** Loans from other regions. Absent: there are none. */
  readonly lender?: Pick<Lender, "share" | "regions" | "droppedKeyCount"> | undefined;
  /** Monotonic time, in milliseconds. */
  readonly nowMs: () => number;
}

/** Maximum number of Envoys on one page. The page also shows how many there are. */
export const shownNodesMax = 200;

/**
 * Renders the Envoys of the control port, for people: their identity, what they were sent and have
 * accepted, what they did in the last second, and their problems. This is the only place that shows
 * names that Envoys have given themselves.
 *
 * @param nodeId of the only Envoy to show; absent for all
 */
export function renderFleet(
  { plane, loop, lender, nowMs }: FleetPageParts,
  nodeId: string | undefined,
): unknown {
  const { registry, snapshot, contestedClusters, contestedPins, unfixedPins } = plane;
  const found = nodeId === undefined ? [...registry.nodes] : [registry.find(nodeId)];
  const nodes = found.filter((node) => node !== undefined);
  const shown = nodes.slice(0, shownNodesMax);
  const reports = reportsByNode(plane.lastReports, new Set(shown.map(({ id }) => id)));
  return {
    snapshot: snapshot && {
      term: snapshot.term,
      leader: snapshot.leaderId,
      version: snapshot.version,
    },
    lending: lender && {
      share: lender.share,
      regions: lender.regions(),
      droppedKeyCount: lender.droppedKeyCount,
    },
    loop: renderLoop(loop?.(), (id) => registry.find(id)?.ledger.acknowledgedLayer?.version),
    nodeCount: registry.nodeCount,
    nodes: shown.map((node) => renderNode(node, reports.get(node.id) ?? [], nowMs())),
    problems: {
      servicesWithoutCluster: plane.unseenServices(),
      clustersOfSeveralServices: Object.fromEntries(contestedClusters),
      servicesWithContestedPins: contestedPins,
      servicesWithUnfixedPins: unfixedPins,
      clustersWithoutService: [...registry.unclaimedClusters],
      failedStreams: Object.fromEntries([...plane.counts.faults].filter(([, count]) => count > 0)),
    },
  };
}

function reportsByNode(
  reports: readonly NodeReport[],
  nodeIds: ReadonlySet<string>,
): ReadonlyMap<string, readonly NodeReport[]> {
  const byNode = new Map<string, NodeReport[]>();
  for (const report of reports) {
    if (!nodeIds.has(report.nodeId)) continue;
    const known = byNode.get(report.nodeId);
    if (known === undefined) byNode.set(report.nodeId, [report]);
    else known.push(report);
  }
  return byNode;
}

function renderNode(node: Node, reports: readonly NodeReport[], nowMs: number): unknown {
  const { id, identity, ledger, signals, claims, heardAtMs, refusal } = node;
  const { cluster, agent, version } = identity;
  const { sentLayer, acknowledgedLayer } = ledger;
  return {
    id,
    cluster,
    program: `${agent} ${version}`.trim(),
    heardSecondsAgo: secondsSince(heardAtMs, nowMs),
    streams: [...claims.keys()],
    problems: problemsOf(node, nowMs),
    refusal,
    layer: sentLayer && {
      sentVersion: sentLayer.version,
      acknowledgedVersion: acknowledgedLayer?.version,
      sentSecondsAgo: secondsSince(ledger.sentAtMs, nowMs),
    },
    clusters: Object.fromEntries(
      [...signals.clusters()].map(([name, { atMs, connectionOverflowCount }]) => [
        name,
        { heardSecondsAgo: secondsSince(atMs, nowMs), connectionOverflowCount },
      ]),
    ),
    services: Object.fromEntries(
      reports.map((report) => [
        report.service,
        {
          sentShare: sentLayer?.shares.get(report.service),
          acknowledgedShare: acknowledgedLayer?.shares.get(report.service),
          heldShare: report.held,
          reportSecondsAgo: secondsSince(report.atMs, nowMs),
          inFlight: report.inFlight,
          highInFlight: report.highInFlight,
          requestsPerSecond: report.rps,
          latency: report.latency,
          errorCount: report.errorCount,
          dropCount: report.dropCount,
          overflowCount: report.overflowCount,
          gradient: report.gradientFacts,
        },
      ]),
    ),
  };
}

/** Rounds to a tenth. */
function secondsSince(atMs: number, nowMs: number): number {
  return Math.round((nowMs - atMs) / 100) / 10;
}

/** Maximum number of shares of one service on the page. The page also shows how many there are. */
export const shownSharesMax = 200;

/** The version that an Envoy acknowledged last. Undefined: it is not connected here. */
type AcknowledgedVersion = (nodeId: string) => string | undefined;

/** Renders the loop of the fleet, for people: the leader, the decisions, and their input. */
export function renderLoop(
  status: FleetLoopStatus | undefined,
  acknowledged: AcknowledgedVersion,
): unknown {
  if (status === undefined) return { isOpen: false };
  const { isLeading, snapshot, ageMs, counts } = status;
  const services = [...(snapshot?.services ?? [])];
  return {
    isOpen: true,
    isLeading,
    term: snapshot?.term,
    leader: snapshot?.leaderId,
    version: snapshot?.version,
    ageSeconds: ageMs === undefined ? undefined : Math.round(ageMs / 100) / 10,
    counts,
    services: Object.fromEntries(
      services.map(([name, service]) => [name, renderService(service, acknowledged)]),
    ),
  };
}

function renderService(
  { limit, shares, rejectRatio, gate, facts }: ServiceShares,
  acknowledged: AcknowledgedVersion,
): unknown {
  const shown = [...shares].slice(0, shownSharesMax);
  return {
    limit,
    ...facts,
    rejectRatio,
    gate,
    shareCount: shares.size,
    shares: Object.fromEntries(
      shown.map(([nodeId, share]) => [
        nodeId,
        { ...share, acknowledgedVersion: acknowledged(nodeId) },
      ]),
    ),
  };
}
