import type { ScriptCall, ScriptReply } from "../../src/store/connection.js";
import type { NodeConnection, NodeLinks } from "../../src/store/redis/cluster/cluster-nodes.js";
import type { NodeAddress } from "../../src/store/redis/cluster/cluster-topology.js";

/** A call that a fake node was sent. */
export interface SentCall {
  readonly address: NodeAddress;
  readonly call: ScriptCall;
  readonly isAsking: boolean;
}

/** Nodes of a cluster that answer as the test says. */
export class FakeNodes implements NodeLinks {
  isClosed = false;
  /** What a node answers to a script, or throws. */
  answer: (sent: SentCall) => ScriptReply = () => undefined;
  /** What a node answers to CLUSTER SLOTS, or throws. */
  slots: (address: NodeAddress) => unknown = () => [];
  readonly sent: SentCall[] = [];
  /** Who was asked for the slots, in order. */
  readonly asked: NodeAddress[] = [];
  readonly ready = new Set<NodeAddress>();
  kept: ReadonlySet<NodeAddress> | undefined;

  connection(address: NodeAddress): NodeConnection {
    const run = async (call: ScriptCall, isAsking: boolean): Promise<ScriptReply> => {
      const sent = { address, call, isAsking };
      this.sent.push(sent);
      return this.answer(sent);
    };
    const connection = {
      inFlightCount: 0,
      run: (call: ScriptCall) => run(call, false),
      runAsking: (call: ScriptCall) => run(call, true),
      clusterSlots: async () => {
        this.asked.push(address);
        return this.slots(address);
      },
      close: () => {},
    };
    return { connection, isReady: () => this.ready.has(address), whenReady: async () => {} };
  }

  readyAddresses(): readonly NodeAddress[] {
    return [...this.ready];
  }

  closeOthers(kept: ReadonlySet<NodeAddress>): void {
    this.kept = kept;
  }
}
