import type { ServiceError } from "../../src/core/base/errors.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import { clusterTags, keySlot, tagIndex } from "../../src/store/redis/cluster/cluster-tags.js";
import type { NodeAddress } from "../../src/store/redis/cluster/cluster-topology.js";
import { SlotRefusal } from "../../src/store/redis/redis-error.js";
import type { SimulatedServer } from "./simulated-server.js";

/** One slot that holds keys of ours, and the nodes that have to do with it. */
interface Slot {
  readonly number: number;
  owner: number;
  /** The node that it is on its way to. */
  heir: number | undefined;
}

/** The keys that a call names, and whether it comes by order of the node that they leave. */
export interface Approach {
  readonly keys: readonly LimitKey[];
  readonly isAsking: boolean;
}

const firstPort = 7_000;

/**
 * A Redis Cluster as far as routing goes: which node runs a call, and what the others say instead.
 * All nodes know the same at any time; who asks them may be behind.
 *
 * Source: "Redis cluster specification", and getNodeByQuery in redis/src/cluster.c.
 */
export class SimulatedCluster {
  readonly servers: readonly SimulatedServer[];
  readonly tagCount: number;
  /** By tag. */
  readonly #slots: readonly Slot[];

  constructor(servers: readonly SimulatedServer[], tagCount: number) {
    this.servers = servers;
    this.tagCount = tagCount;
    this.#slots = clusterTags(tagCount).map((tag, i) => {
      const owner = Math.floor((i * servers.length) / tagCount);
      return { number: keySlot(`{${tag}}`), owner, heir: undefined };
    });
    for (const [node, server] of servers.entries()) {
      server.holds = (key) => {
        const { owner, heir } = this.#slotOf(key);
        return owner === node || heir === node;
      };
    }
  }

  /** The address of a node, and the node of an address. */
  addressOf(node: number): NodeAddress {
    return `127.0.0.1:${firstPort + node}`;
  }

  /** See `addressOf`; throws where there is none. */
  nodeAt(address: NodeAddress): SimulatedServer {
    const server = this.servers[Number(address.split(":")[1]) - firstPort];
    if (server === undefined) throw new Error("there is no node at this address");
    return server;
  }

  /**
   * The server that holds the key now: where a failover has brought back a key that had left, that
   * is its slot's owner, as for everybody who asks.
   */
  serverOf(key: LimitKey): SimulatedServer | undefined {
    const { owner, heir } = this.#slotOf(key);
    const places = heir === undefined ? [owner] : [owner, heir];
    return places.map((node) => this.servers[node]).find((server) => server?.has(key));
  }

  /** What CLUSTER SLOTS replies, of the slots that hold keys of ours. */
  slotsReply(): unknown {
    return this.#slots.map(({ number, owner }) => {
      return [number, number, [Buffer.from("127.0.0.1"), firstPort + owner]];
    });
  }

  /** Why a node does not run a call. */
  refusalOf(server: SimulatedServer, { keys, isAsking }: Approach): ServiceError | undefined {
    const [first] = keys;
    if (first === undefined) return undefined;
    const node = this.servers.indexOf(server);
    const { owner, heir } = this.#slotOf(first);
    const missingCount = keys.filter((key) => !server.has(key)).length;
    if (node === owner) {
      if (heir === undefined || missingCount === 0) return undefined;
      if (missingCount < keys.length) return new SlotRefusal("tryAgain", "");
      return new SlotRefusal("ask", this.addressOf(heir));
    }
    if (node !== heir || !isAsking) return new SlotRefusal("moved", this.addressOf(owner));
    return keys.length > 1 && missingCount > 0 ? new SlotRefusal("tryAgain", "") : undefined;
  }

  /** Begins to move the slot of a tag; false while it is on its way already, or there. */
  beginMove(tag: number, to: number): boolean {
    const slot = this.#slot(tag);
    if (slot.heir !== undefined || slot.owner === to) return false;
    slot.heir = to;
    return true;
  }

  /** Moves those of its keys that are chosen; false while one of the nodes is not well. */
  moveKeys(tag: number, isChosen: (key: LimitKey) => boolean): boolean {
    const slot = this.#slot(tag);
    const [from, to] = [this.servers[slot.owner], this.servers[slot.heir ?? slot.owner]];
    if (from?.health.kind !== "well" || to?.health.kind !== "well") return false;
    for (const key of from.keys()) {
      if (this.#slotOf(key) === slot && isChosen(key)) from.moveTo(to, key);
    }
    return true;
  }

  /** Moves what is left; then the slot is its new node's. False while one of them is not well. */
  endMove(tag: number): boolean {
    const slot = this.#slot(tag);
    if (!this.moveKeys(tag, () => true)) return false;
    slot.owner = slot.heir ?? slot.owner;
    slot.heir = undefined;
    return true;
  }

  #slotOf(key: LimitKey): Slot {
    return this.#slot(tagIndex(key, this.tagCount));
  }

  #slot(tag: number): Slot {
    const slot = this.#slots[tag];
    if (slot === undefined) throw new Error("there is no such tag");
    return slot;
  }
}
