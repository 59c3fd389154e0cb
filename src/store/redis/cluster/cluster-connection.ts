import { assert, ServiceError, toServiceError } from "../../../core/base/errors.js";
import type { ConnectionRole } from "../redis-connection.js";
import { SlotRefusal } from "../redis-error.js";
import type { ScriptCall, ScriptReply, StoreConnection } from "../scripts/connection.js";
import type { NodeLinks } from "./cluster-nodes.js";
import { keySlot } from "./cluster-tags.js";
import { type ClusterTopology, type NodeAddress, resolveAddress } from "./cluster-topology.js";

interface ClusterConnectionOptions {
  readonly role: ConnectionRole;
  readonly topology: ClusterTopology;
  readonly nodes: NodeLinks;
  /** Why nothing is known of the cluster yet, if the nodes said so. */
  readonly whyUnknown: () => ServiceError | undefined;
  /** Told that what is known may be old; a node that knows better comes along if there is one. */
  readonly onDoubt: (hint?: NodeAddress) => void;
}

/**
 * How often one call is sent on: an old view of the slots, then one that moves at the same time. A
 * node that sends us on has not run the script, so nothing is ever charged twice.
 */
export const redirectionsMax = 3;

/**
 * Runs each script on the node that owns its keys, which all carry one hash tag. Follows MOVED and
 * ASK inside the call's deadline; anything else that fails is not repeated, as on a single server.
 */
export class ClusterConnection implements StoreConnection {
  readonly #options: ClusterConnectionOptions;

  constructor(options: ClusterConnectionOptions) {
    this.#options = options;
  }

  /** Rejects as `RedisConnection.run` does, and with STORE_UNAVAILABLE while no node is known. */
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

/** To the caller a redirection that led nowhere is a store that cannot be used for a moment. */
function withoutRedirection(thrown: unknown): ServiceError {
  if (thrown instanceof SlotRefusal && thrown.kind !== "tryAgain") {
    return new ServiceError(
      "STORE_UNAVAILABLE",
      "The nodes of the cluster redirect the call in a circle.",
    );
  }
  return toServiceError(thrown);
}
