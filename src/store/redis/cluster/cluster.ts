import { assert, ServiceError, toServiceError } from "../../../core/base/errors.js";
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
import { SlotRefusal } from "../redis-error.js";
import type { ScriptCall, ScriptReply, StoreConnection } from "../scripts/connection.js";
import type { ClusterTarget } from "../target.js";
import { ClusterNodes, type NodeLinks } from "./cluster-nodes.js";
import { ClusterRefresh } from "./cluster-refresh.js";
import { keySlot } from "./cluster-tags.js";
import {
  ClusterTopology,
  joinAddress,
  type NodeAddress,
  resolveAddress,
} from "./cluster-topology.js";

interface OpenClusterOptions
  extends Omit<OpenRedisOptions, "target" | "onEvent" | "isPrimaryOnly"> {
  readonly target: ClusterTarget;
  /** Receives the events of the connections to each node. */
  readonly onEvent: (event: RedisEvent, address: NodeAddress) => void;
}

/** Assumed number of hash tags per node. A batch makes that many calls to each node. */
const tagsPerNode = 4;

/**
 * Opens connections like those of `openRedis` to a Redis Cluster. Each call goes to the node that
 * owns its keys, over a connection with the same guarantees as one to a single server.
 *
 * Does not use the library's cluster client: it queues calls for nodes without a connection and
 * repeats calls on its own. Both could charge at a time when the caller no longer waits.
 *
 * Connects at once and reconnects until `close`. Never rejects and never throws.
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

interface ClusterConnectionOptions {
  readonly role: ConnectionRole;
  readonly topology: ClusterTopology;
  readonly nodes: NodeLinks;
  /** Returns why nothing is known about the cluster, if the nodes gave a reason. */
  readonly whyUnknown: () => ServiceError | undefined;
  /** Called if the known slots may be outdated, with a node that knows better if there is one. */
  readonly onDoubt: (hint?: NodeAddress) => void;
}

/**
 * Maximum redirections of one call: for an outdated view of the slots and for a slot that moves at
 * the same time. A node that redirects has not run the script, so nothing is ever charged twice.
 */
export const redirectionsMax = 3;

/**
 * Runs each script on the node that owns its keys, which all have the same hash tag. Follows MOVED
 * and ASK within the call's deadline. Repeats no other failure, as on a single server.
 */
export class ClusterConnection implements StoreConnection {
  readonly #options: ClusterConnectionOptions;

  constructor(options: ClusterConnectionOptions) {
    this.#options = options;
  }

  /** Rejects like `RedisConnection.run`, and with STORE_UNAVAILABLE while no node is known. */
  async run(call: ScriptCall): Promise<ScriptReply> {
    const { nodes, topology, whyUnknown, onDoubt } = this.#options;
    if (nodes.isClosed) throw new ServiceError("STORE_CLOSED");
    const [key] = call.keys;
    assert(key !== undefined, "a script of a cluster names a key");
    const slot = keySlot(key);
    const owner = topology.owner(slot);
    if (owner === undefined) {
      onDoubt();
      throw (
        whyUnknown() ??
        new ServiceError("STORE_UNAVAILABLE", "No node of the cluster has Headgate's keys.")
      );
    }
    return this.#runAt(owner, call, slot);
  }

  async #runAt(owner: NodeAddress, call: ScriptCall, slot: number): Promise<ScriptReply> {
    const { nodes, role, topology, onDoubt } = this.#options;
    let address = owner;
    let isAsking = false;
    for (let redirectionCount = 0; ; redirectionCount += 1) {
      const node = nodes.connection(address, role);
      if (node === undefined) throw new ServiceError("STORE_CLOSED");
      if (redirectionCount > 0) await node.whenReady(call.deadlineMs);
      try {
        const { connection } = node;
        return await (isAsking ? connection.runAsking(call) : connection.run(call));
      } catch (thrown) {
        const next = nextAddress(thrown, address);
        if (next === undefined || redirectionCount === redirectionsMax) {
          onDoubt();
          throw withoutRedirection(thrown);
        }
        isAsking = next.isAsking;
        address = next.address;
        if (isAsking) continue;
        topology.move(slot, address);
        onDoubt(address);
      }
    }
  }
}

function nextAddress(
  thrown: unknown,
  asked: NodeAddress,
): { readonly address: NodeAddress; readonly isAsking: boolean } | undefined {
  if (!(thrown instanceof SlotRefusal) || thrown.kind === "tryAgain") return undefined;
  const address = resolveAddress(thrown.address, asked);
  return address === undefined ? undefined : { address, isAsking: thrown.kind === "ask" };
}

/** Converts an unresolved redirection to STORE_UNAVAILABLE, since the problem is temporary. */
function withoutRedirection(thrown: unknown): ServiceError {
  if (thrown instanceof SlotRefusal && thrown.kind !== "tryAgain") {
    return new ServiceError(
      "STORE_UNAVAILABLE",
      "The nodes of the cluster redirect the call in a circle.",
    );
  }
  return toServiceError(thrown);
}
