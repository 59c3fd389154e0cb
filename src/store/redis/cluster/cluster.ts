import {
  batchesInFlightMax,
  decisionReconnectMsMax,
  type OpenRedisOptions,
  type RedisConnections,
  reconnectMsMax,
  waitingCallsInFlightMax,
} from "../connections.js";
import { PatientConnection } from "../patient-connection.js";
import { type ConnectionRole, callMsMax, type RedisEvent } from "../redis-connection.js";
import type { StoreConnection } from "../scripts/connection.js";
import type { ClusterTarget } from "../target.js";
import { ClusterConnection } from "./cluster-connection.js";
import { ClusterNodes } from "./cluster-nodes.js";
import { ClusterRefresh } from "./cluster-refresh.js";
import { ClusterTopology, joinAddress, type NodeAddress } from "./cluster-topology.js";

interface OpenClusterOptions
  extends Omit<OpenRedisOptions, "target" | "onEvent" | "isPrimaryOnly"> {
  readonly target: ClusterTarget;
  /** Told what happens to the connections to each node. */
  readonly onEvent: (event: RedisEvent, address: NodeAddress) => void;
}

/** Hash tags that a node is thought to hold: each batch is that many calls there. */
const tagsPerNode = 4;

/**
 * The connections of `openRedis`, to a Redis Cluster: each call goes to the node that owns its
 * keys, over a connection to that node which is like the one to a single server in all it promises.
 *
 * Why not the cluster client of the library: it queues calls for nodes that it has no connection to
 * yet, and repeats them on its own; both could charge at a time of which no caller knows any more.
 *
 * Connects at once and keeps reconnecting until `close`; never rejects and never throws.
 */
export function openRedisCluster(options: OpenClusterOptions): RedisConnections {
  const { target, clock, random, onEvent } = options;
  const { username, password, isTls } = target;
  const topology = new ClusterTopology();
  const { timeoutMs = callMsMax } = options;
  const waiting = { callsInFlightMax: waitingCallsInFlightMax, reconnectMsMax, timeoutMs };
  const nodes = new ClusterNodes({
    credentials: {
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
    },
    isTls,
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    clientName: options.clientName ?? "headgate",
    ...(options.silenceMsMax === undefined ? {} : { silenceMsMax: options.silenceMsMax }),
    limits: {
      decision: {
        callsInFlightMax: batchesInFlightMax * tagsPerNode,
        reconnectMsMax: decisionReconnectMsMax,
        timeoutMs,
      },
      fleet: waiting,
      background: waiting,
    },
    clock,
    random,
    onEvent,
  });
  const seeds = target.nodes.map(({ host, port }) => joinAddress(host, port));
  const refresh = new ClusterRefresh({ seeds, topology, nodes, clock });
  const route = (role: ConnectionRole): ClusterConnection =>
    new ClusterConnection({
      role,
      topology,
      nodes,
      whyUnknown: () => refresh.failure,
      onDoubt: (hint) => refresh.doubt(hint),
    });
  const patiently = (connection: StoreConnection): PatientConnection =>
    new PatientConnection({ connection, clock, random });
  const decision = route("decision");
  const patient = {
    decisionPatiently: patiently(decision),
    fleet: patiently(route("fleet")),
    background: patiently(route("background")),
  };
  const close = async (): Promise<void> => {
    refresh.close();
    nodes.close();
    for (const connection of Object.values(patient)) connection.wake();
  };
  return { decision, ...patient, close };
}
