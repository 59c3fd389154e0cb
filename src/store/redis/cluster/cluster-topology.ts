import { ServiceError } from "../../../core/base/errors.js";
import { slotCount } from "./cluster-tags.js";

/** The most nodes of a cluster that we connect to; a reply that names more is not believed. */
export const clusterNodesMax = 256;

/** `host:port` of a node, as the cluster itself names it. */
export type NodeAddress = string;

/** Which node serves which slots. */
interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly address: NodeAddress;
}

/** Who owns each slot, as far as we were told. */
export class ClusterTopology {
  #owners: (NodeAddress | undefined)[] = [];
  #addresses: ReadonlySet<NodeAddress> = new Set();

  /** The nodes that own slots; empty as long as nothing is known. */
  get addresses(): ReadonlySet<NodeAddress> {
    return this.#addresses;
  }

  /** The node that owns a slot; undefined when none does, or nothing is known yet. */
  owner(slot: number): NodeAddress | undefined {
    return this.#owners[slot];
  }

  /** Takes over what a node told of the whole cluster. */
  replace(ranges: readonly SlotRange[]): void {
    const owners = new Array<NodeAddress | undefined>(slotCount);
    for (const { first, last, address } of ranges) owners.fill(address, first, last + 1);
    this.#owners = owners;
    this.#addresses = new Set(ranges.map(({ address }) => address));
  }

  /** Takes over what a node told of one slot. */
  move(slot: number, address: NodeAddress): void {
    if (this.#owners[slot] === address) return;
    this.#owners[slot] = address;
    if (!this.#addresses.has(address)) this.#addresses = new Set([...this.#addresses, address]);
  }
}

/**
 * Reads the reply of CLUSTER SLOTS: ranges of first slot, last slot, the node that serves them, its
 * replicas. A node without a host is at the host that was asked. Throws STORE_PROTOCOL when it is
 * anything else, or names more nodes than `clusterNodesMax`.
 *
 * Source: CLUSTER SLOTS, also on preferred endpoints that are not known.
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

/** `host:port`, with an address of version 6 as it stands: the port follows the last colon. */
export function joinAddress(host: string, port: number): NodeAddress {
  return `${host}:${port}`;
}

/** Undoes `joinAddress`; undefined when there is no port. The host may be empty. */
export function splitAddress(
  address: NodeAddress,
): { readonly host: string; readonly port: number } | undefined {
  const colon = address.lastIndexOf(":");
  const port = Number(address.slice(colon + 1));
  return colon < 0 || !isPort(port) ? undefined : { host: address.slice(0, colon), port };
}

/** A redirection's address, which leaves the host out where it is the one that was asked. */
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
