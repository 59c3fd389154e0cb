import type { Document, Tree } from "../../base/document.js";
import type { ProxyPlan } from "../base/proxies.js";
import { layeredRuntime } from "../http/layered-runtime.js";
import { localReplies } from "../http/local-replies.js";
import { telemetry } from "../http/telemetry.js";
import {
  referredClusters,
  type SideParts,
  sideParts,
  tcpParts,
  usedClusters,
} from "./bootstrap.js";
import { overload } from "./overload.js";

/**
 * Generates the fragments of one proxy, to merge into an existing one. Each is valid by itself and
 * says where it belongs. Fragments that the services do not need are left out.
 */
export function fragments(plan: ProxyPlan): readonly Document[] {
  const { context, sides } = plan;
  const parts = sides.map(sideParts);
  const runtime = layeredRuntime(context);
  const reported = telemetry(context);
  const protections = overload(context);
  const filters = parts.map((part) => ({ http_filters: part.httpFilters }));
  const tcp = tcpParts(plan);
  const used = referredClusters([runtime, reported, ...filters, ...tcp.listeners]);
  const clusters = [
    ...parts.flatMap((part) => part.clusters),
    ...tcp.clusters,
    ...usedClusters(context, used),
  ];
  const pieces: readonly (Piece | undefined)[] = [
    clusters.length === 0 ? undefined : { ...clusterPiece, part: clusters },
    ...parts.flatMap((part) => sidePieces(part)),
    tcp.listeners.length === 0 ? undefined : { ...listenerPiece, part: tcp.listeners },
    { ...localReplyPiece, part: localReplies(context) },
    { ...runtimePiece, part: runtime },
    protections && { ...overloadPiece, part: protections },
    Object.keys(reported).length === 0 ? undefined : { ...telemetryPiece, part: reported },
  ];
  return pieces.filter((piece) => piece !== undefined).map((piece) => document(plan, piece));
}

interface PieceKind {
  readonly file: string;
  readonly message: string;
  readonly goes: string;
}

interface Piece extends PieceKind {
  readonly part: Tree;
}

const clusterPiece: PieceKind = {
  file: "clusters",
  message: "envoy.config.cluster.v3.Cluster",
  goes:
    "Add these to static_resources.clusters, or merge them into your clusters of the same " +
    "names.",
};

const listenerPiece: PieceKind = {
  file: "tcp_listeners",
  message: "envoy.config.listener.v3.Listener",
  goes: "Add these to static_resources.listeners.",
};

const localReplyPiece: PieceKind = {
  file: "local_reply_config",
  message: "envoy.extensions.filters.network.http_connection_manager.v3.LocalReplyConfig",
  goes: "The local_reply_config of the HTTP connection manager. Put its mappers before yours.",
};

const runtimePiece: PieceKind = {
  file: "layered_runtime",
  message: "envoy.config.bootstrap.v3.LayeredRuntime",
  goes: "The layered_runtime of the bootstrap. If you have one, add these layers in this order.",
};

const overloadPiece: PieceKind = {
  file: "overload_manager",
  message: "envoy.config.overload.v3.OverloadManager",
  goes: "The overload_manager of the bootstrap.",
};

const telemetryPiece: PieceKind = {
  file: "telemetry",
  message: "envoy.config.bootstrap.v3.Bootstrap",
  goes: "Fields of the bootstrap. Your own statistics need their own patterns here.",
};

function sidePieces({ side, httpFilters, virtualHosts }: SideParts): readonly Piece[] {
  const isOutbound = side.context.side === "outbound";
  const prefix = isOutbound ? "outbound_" : "";
  const where = isOutbound ? "for the service's outbound calls" : "for inbound requests";
  return [
    {
      file: `${prefix}http_filters`,
      message: "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter",
      goes:
        `The http_filters of the HTTP connection manager ${where}. Put filters that ` +
        "remove a\npriority header first, then your own filters, then the others, " +
        "and one router last.",
      part: httpFilters,
    },
    {
      file: `${prefix}virtual_hosts`,
      message: "envoy.config.route.v3.VirtualHost",
      goes:
        `Add these to the virtual_hosts of the route configuration ${where}.\nAdd ` +
        "the per-route settings of your own filters (such as authentication) to the " +
        "routes that forward.\nBypassed paths and classes have no routes here, " +
        "because they would skip those settings.",
      part: virtualHosts,
    },
  ];
}

function document({ folder }: ProxyPlan, { file, message, goes, part }: Piece): Document {
  return {
    path: `fragments/${folder}/${file}.yaml`,
    kind: { format: "yaml", is: "envoy", message },
    title: goes,
    parts: [part],
  };
}
