import type { Clock, Random } from "../../../core/base/clock.js";
import type { TlsSource } from "../dial.js";
import { type ConnectionRole, RedisConnection, type RedisEvent } from "../redis-connection.js";
import type { RedisTarget } from "../target.js";
import { joinAddress, type NodeAddress, splitAddress } from "./cluster-topology.js";

interface ClusterNodesOptions {
  /** Credentials for every node. Each node has its own address. */
  readonly credentials: Pick<RedisTarget, "username" | "password">;
  readonly isTls: boolean;
  readonly tls?: TlsSource;
  readonly clientName: string;
  /** How long a node that owes a reply may be silent. Default: `defaultSilenceMsMax`. */
  readonly silenceMsMax?: number;
  /** Limits of each connection to a node, by role, such as its maximum calls in flight. */
  readonly limits: Readonly<Record<ConnectionRole, ConnectionLimits>>;
  readonly clock: Clock;
  readonly random: Random;
  readonly onEvent: (event: RedisEvent, address: NodeAddress) => void;
}

interface ConnectionLimits {
  readonly callsInFlightMax: number;
  readonly reconnectMsMax: number;
  readonly timeoutMs?: number;
}

/** The methods of a node's connection that a cluster uses. */
export type NodeLink = Pick<
  RedisConnection,
  "run" | "runAsking" | "clusterSlots" | "inFlightCount" | "close"
>;

/** One connection to one node. */
export interface NodeConnection {
  readonly connection: NodeLink;
  /** Reports whether the connection can be used now. */
  readonly isReady: () => boolean;
  /** Resolves as soon as the connection can be used, or at the deadline. */
  readonly whenReady: (deadlineMs: number) => Promise<void>;
}

/** The connections to the nodes, for callers that send calls to them. */
export type NodeLinks = Pick<
  ClusterNodes,
  "isClosed" | "connection" | "readyAddresses" | "closeOthers"
>;

interface OpenNode {
  readonly address: NodeAddress;
  readonly byRole: Map<ConnectionRole, NodeConnection>;
}

/** The connections to the nodes of a cluster, opened on first use. */
export class ClusterNodes {
  readonly #options: ClusterNodesOptions;
  readonly #nodes = new Map<NodeAddress, OpenNode>();
  #isClosed = false;

  constructor(options: ClusterNodesOptions) {
    this.#options = options;
  }

  /** Whether `close` was called. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Returns a role's connection to a node; undefined for an invalid address, or after `close`. */
  connection(address: NodeAddress, role: ConnectionRole): NodeConnection | undefined {
    const open = this.#nodes.get(address)?.byRole.get(role);
    if (open !== undefined) return open;
    const place = splitAddress(address);
    if (place === undefined || this.#isClosed) return undefined;
    const made = this.#open(address, role);
    const node = this.#nodes.get(address) ?? { address, byRole: new Map() };
    node.byRole.set(role, made);
    this.#nodes.set(address, node);
    return made;
  }

  /** Returns the nodes with a connection of the role that can be used now. */
  readyAddresses(role: ConnectionRole): readonly NodeAddress[] {
    const nodes = [...this.#nodes.values()];
    return nodes.filter(({ byRole }) => byRole.get(role)?.isReady()).map(({ address }) => address);
  }

  /** Closes connections to all other nodes, except those with calls in flight. */
  closeOthers(kept: ReadonlySet<NodeAddress>): void {
    for (const { address, byRole } of [...this.#nodes.values()]) {
      if (kept.has(address)) continue;
      for (const [role, { connection }] of [...byRole]) {
        if (connection.inFlightCount > 0) continue;
        connection.close();
        byRole.delete(role);
      }
      if (byRole.size === 0) this.#nodes.delete(address);
    }
  }

  /** Closes all connections for good. Calls in flight reject with STORE_CLOSED. */
  close(): void {
    this.#isClosed = true;
    for (const { byRole } of this.#nodes.values()) {
      for (const { connection } of byRole.values()) connection.close();
    }
    this.#nodes.clear();
  }

  #open(address: NodeAddress, role: ConnectionRole): NodeConnection {
    const { credentials, isTls, tls, clientName, silenceMsMax, limits } = this.#options;
    const { clock, random, onEvent } = this.#options;
    const { host, port } = splitAddress(address) ?? { host: "", port: 0 };
    let isReady = false;
    const waiters = new Set<() => void>();
    const connection = new RedisConnection({
      role,
      target: { ...credentials, address: { kind: "tcp", host, port, isTls }, database: 0 },
      ...(tls === undefined ? {} : { tls }),
      clientName,
      ...(silenceMsMax === undefined ? {} : { silenceMsMax }),
      ...limits[role],
      clock,
      random,
      onEvent: (event) => {
        if (event.kind === "redisConnected") isReady = true;
        else if (event.kind === "redisLost") isReady = false;
        if (isReady) for (const wake of [...waiters]) wake();
        onEvent(event, joinAddress(host, port));
      },
    });
    const whenReady = (deadlineMs: number): Promise<void> => {
      if (isReady) return Promise.resolve();
      return new Promise((resolve) => {
        const wake = (): void => {
          cancel();
          waiters.delete(wake);
          resolve();
        };
        const cancel = clock.schedule(Math.max(0, deadlineMs - clock.monotonicMs()), wake);
        waiters.add(wake);
      });
    };
    return { connection, isReady: () => isReady, whenReady };
  }
}
