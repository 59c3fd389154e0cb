import type { Random } from "../../src/core/base/clock.js";
import { ServiceError } from "../../src/core/base/errors.js";
import type {
  LimitStore,
  StoredBucket,
  StoreOutcome,
  StoreRequest,
} from "../../src/store/limit-store.js";
import { ClusterConnection } from "../../src/store/redis/cluster/cluster.js";
import type { NodeConnection, NodeLinks } from "../../src/store/redis/cluster/cluster-nodes.js";
import { ClusterRefresh } from "../../src/store/redis/cluster/cluster-refresh.js";
import {
  ClusterTopology,
  type NodeAddress,
} from "../../src/store/redis/cluster/cluster-topology.js";
import { createRedisStore, type RedisSide } from "../../src/store/redis/cluster/split-redis.js";
import type { RedisConnections } from "../../src/store/redis/connections.js";
import type { StoreConnection } from "../../src/store/redis/scripts/connection.js";
import type { SimulatedCluster } from "./simulated-cluster.js";
import { SimulatedLedger } from "./simulated-ledger.js";
import {
  fairWeather,
  type Incident,
  type NetworkWeather,
  SimulatedLink,
} from "./simulated-link.js";
import type { SimulatedServer } from "./simulated-server.js";
import type { SimulatedClock, SimulatedTime } from "./simulated-time.js";

/** A single server, or a cluster. */
export type SimulatedSide =
  | { readonly kind: "single"; readonly server: SimulatedServer }
  | { readonly kind: "cluster"; readonly cluster: SimulatedCluster };

/** All that Redis is to the replicas. */
export interface SimulatedSides {
  readonly main: SimulatedSide;
  /** Of limits by the second. */
  readonly perSecond?: SimulatedSide;
}

/** A batch that the replica sent. */
export interface SentBatch {
  readonly requests: readonly StoreRequest[];
  readonly sentMs: number;
}

/** Told of each batch when it is sent and just before its answer is handed over. */
export interface StoreWatcher {
  sent(batch: SentBatch): void;
  delivered(batch: SentBatch, outcomes: readonly StoreOutcome[]): void;
  met(incident: Incident): void;
  /** Told of everything that may not happen. */
  violated(what: string): void;
}

/** What a `SimulatedStore` is made of. */
export interface SimulatedStoreParts {
  readonly sides: SimulatedSides;
  readonly time: SimulatedTime;
  readonly clock: SimulatedClock;
  readonly random: Random;
  readonly watcher: StoreWatcher;
}

/**
 * The store as one replica sees it: the real one for Redis, down to its connections, over simulated
 * servers behind a network.
 */
export class SimulatedStore implements LimitStore {
  readonly #parts: SimulatedStoreParts;
  readonly #inner: LimitStore;
  /** What is asked of it and what it sends. */
  readonly ledger = new SimulatedLedger();
  readonly #weathers = new Map<SimulatedServer, NetworkWeather>();

  constructor(parts: SimulatedStoreParts) {
    this.#parts = parts;
    const { main, perSecond } = parts.sides;
    this.#inner = createRedisStore({
      main: this.#open(main),
      ...(perSecond === undefined ? {} : { perSecond: this.#open(perSecond) }),
      keyPrefix: "headgate:",
      onBadBuckets: () => {},
      clock: parts.clock,
    });
  }

  /** Changes the weather on the way to a server. */
  setWeather(server: SimulatedServer, weather: NetworkWeather): void {
    this.#weathers.set(server, weather);
  }

  async take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    const { time, watcher } = this.#parts;
    const sent: SentBatch = { requests: batch, sentMs: time.nowMs };
    watcher.sent(sent);
    this.ledger.ask(batch, deadlineMs);
    const outcomes = await this.#inner.take(batch, deadlineMs);
    const results = outcomes.map((one) => (one.kind === "decided" ? one.result : undefined));
    const key = this.ledger.grant(batch, results, deadlineMs);
    if (key !== undefined) watcher.violated(`granted more hits of ${key} than were taken`);
    watcher.delivered(sent, outcomes);
    return outcomes;
  }

  async peek(): Promise<StoredBucket | undefined> {
    throw new ServiceError("STORE_CLOSED", "Nobody peeks in a simulation.");
  }

  async forget(): Promise<number> {
    throw new ServiceError("STORE_CLOSED", "Nobody forgets in a simulation.");
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {}

  #open(side: SimulatedSide): RedisSide {
    if (side.kind === "single") return { connections: only(this.#link(side.server)) };
    const { cluster } = side;
    const { clock } = this.#parts;
    const topology = new ClusterTopology();
    const nodes = this.#nodesOf(cluster);
    const seeds = cluster.servers.map((_, node) => cluster.addressOf(node));
    const refresh = new ClusterRefresh({ seeds, topology, nodes, clock });
    const connection = new ClusterConnection({
      role: "decision",
      topology,
      nodes,
      whyUnknown: () => refresh.failure,
      onDoubt: (hint) => refresh.doubt(hint),
    });
    return { connections: only(connection), tagCount: cluster.tagCount };
  }

  #nodesOf(cluster: SimulatedCluster): NodeLinks {
    const links = new Map<NodeAddress, NodeConnection>();
    const isReady = (server: SimulatedServer): boolean => {
      return server.health.kind !== "gone" && !this.#weatherOf(server).isRefused;
    };
    const connection = (address: NodeAddress): NodeConnection => {
      const known = links.get(address);
      if (known !== undefined) return known;
      const server = cluster.nodeAt(address);
      const made: NodeConnection = {
        connection: this.#link(server, cluster),
        isReady: () => isReady(server),
        whenReady: async () => {},
      };
      links.set(address, made);
      return made;
    };
    return {
      isClosed: false,
      connection,
      readyAddresses: () => [...links].filter(([, link]) => link.isReady()).map(([at]) => at),
      closeOthers: () => {},
    };
  }

  #link(server: SimulatedServer, cluster?: SimulatedCluster): SimulatedLink {
    const { time, clock, random, watcher } = this.#parts;
    return new SimulatedLink({
      server,
      ...(cluster === undefined ? {} : { cluster }),
      time,
      clock,
      random,
      weather: () => this.#weatherOf(server),
      ledger: this.ledger,
      onIncident: (incident) => watcher.met(incident),
      onViolation: (what) => watcher.violated(what),
    });
  }

  #weatherOf(server: SimulatedServer): NetworkWeather {
    return this.#weathers.get(server) ?? fairWeather;
  }
}

/** Decisions are all that a simulation asks for. */
function only(connection: StoreConnection): RedisConnections {
  return {
    decision: connection,
    decisionPatiently: connection,
    fleet: connection,
    background: connection,
    close: async () => {},
  };
}
