import { ServiceError } from "../../../core/base/errors.js";
import { slotCount } from "./cluster-tags.js";

/** Maximum number of cluster nodes to connect to. A reply with more nodes is rejected. */
export const clusterNodesMax = 256;

/** `host:port` of a node, as reported by the cluster. */
export type NodeAddress = string;

/** A range of slots, and the node that serves them. */
interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly address: NodeAddress;
}

/** The owner of each slot, as far as known. */
export class ClusterTopology {
  #owners: (NodeAddress | undefined)[] = [];
  #addresses: ReadonlySet<NodeAddress> = new Set();

  /** The nodes that own slots; empty until the slots are known. */
  get addresses(): ReadonlySet<NodeAddress> {
    return this.#addresses;
  }

  /** Returns the node that owns a slot; undefined if there is none, or if it is not known yet. */
  owner(slot: number): NodeAddress | undefined {
    return this.#owners[slot];
  }

  /** Replaces the whole view by a node's view of the cluster. */
  replace(ranges: readonly SlotRange[]): void {
    const owners = new Array<NodeAddress | undefined>(slotCount);
    for (const { first, last, address } of ranges) owners.fill(address, first, last + 1);
    this.#owners = owners;
    this.#addresses = new Set(ranges.map(({ address }) => address));
  }

  /** Updates the owner of one slot. */
  move(slot: number, address: NodeAddress): void {
    if (this.#owners[slot] === address) return;
    this.#owners[slot] = address;
    if (!this.#addresses.has(address)) this.#addresses = new Set([...this.#addresses, address]);
  }
}

/**
 * Parses the reply of CLUSTER SLOTS: ranges of first slot, last slot, the node that serves them,
 * its replicas. A node without a host has the host that was asked. Throws STORE_PROTOCOL for
 * anything else, and for more nodes than `clusterNodesMax`.
 *
 * Source: CLUSTER SLOTS, also for preferred endpoints that are unknown.
 */
export function parseSlots(reply: unknown, askedHost: string): readonly SlotRange[] {
  if (!Array.isArray(reply)) throw new ServiceError("STORE_PROTOCOL");
  const ranges = reply.map((range: unknown): SlotRange => {
    const [first, last, node] = Array.isArray(range) ? range : [];
    const [host, port]: readonly unknown[] = Array.isArray(node) ? node : [];
    if (!isSlot(first) || !isSlot(last) || first > last || !isPort(port)) {
      throw new ServiceError("STORE_PROTOCOL");
    }
    const named = Buffer.isBuffer(host) ? host.toString("utf8") : "";
    return { first, last, address: joinAddress(isHost(named) ? named : askedHost, port) };
  });
  if (new Set(ranges.map(({ address }) => address)).size > clusterNodesMax) {
    throw new ServiceError(
      "STORE_PROTOCOL",
      "The cluster has more nodes than Headgate connects to.",
    );
  }
  return ranges;
}

/** Returns `host:port`. IPv6 addresses get no brackets: the port follows the last colon. */
export function joinAddress(host: string, port: number): NodeAddress {
  return `${host}:${port}`;
}

/** Reverses `joinAddress`; undefined if there is no port. The host may be empty. */
export function splitAddress(
  address: NodeAddress,
): { readonly host: string; readonly port: number } | undefined {
  const colon = address.lastIndexOf(":");
  const port = Number(address.slice(colon + 1));
  return colon < 0 || !isPort(port) ? undefined : { host: address.slice(0, colon), port };
}

/** Completes a redirection's address, which omits the host if it is the one that was asked. */
export function resolveAddress(address: NodeAddress, asked: NodeAddress): NodeAddress | undefined {
  const parts = splitAddress(address);
  if (parts === undefined) return undefined;
  if (isHost(parts.host)) return address;
  return joinAddress(splitAddress(asked)?.host ?? "", parts.port);
}

function isHost(text: string): boolean {
  return text !== "" && text !== "?";
}

function isSlot(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < slotCount;
}

function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 65_535;
}
