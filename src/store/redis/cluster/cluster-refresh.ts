import type { Cancel, Clock } from "../../../core/base/clock.js";
import { ServiceError, toServiceError } from "../../../core/base/errors.js";
import type { NodeLinks } from "./cluster-nodes.js";
import {
  type ClusterTopology,
  type NodeAddress,
  parseSlots,
  splitAddress,
} from "./cluster-topology.js";

interface ClusterRefreshOptions {
  /** The nodes that the user named; asked when no other can be. */
  readonly seeds: readonly NodeAddress[];
  readonly topology: ClusterTopology;
  readonly nodes: NodeLinks;
  readonly clock: Clock;
}

/** The least time between two looks at the cluster, however much fails. */
export const refreshMsMin = 250;

/** The longest that one node is waited for before another one is asked. */
const askMsMax = 500;

/** Nodes asked in one look: the first that answers is believed. */
const nodesAskedMax = 5;

/**
 * Keeps the view of a cluster up to date: looks at the start until some node answers, and again
 * when a call found that the view may be old. A node's word is taken as it is: if it is old too,
 * its own cluster tells us so by sending the next call on.
 */
export class ClusterRefresh {
  readonly #options: ClusterRefreshOptions;
  #hint: NodeAddress | undefined;
  #failure: ServiceError | undefined;
  #lookCount = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #isPending = false;
  #cancelNext: Cancel | undefined;
  #isClosed = false;

  /** Looks at once. */
  constructor(options: ClusterRefreshOptions) {
    this.#options = options;
    this.doubt();
  }

  /** Why the last look failed; undefined after one that did not, and before the first has ended. */
  get failure(): ServiceError | undefined {
    return this.#failure;
  }

  /** Looks again soon. The hint is a node that is believed to know. */
  doubt(hint?: NodeAddress): void {
    this.#hint = hint ?? this.#hint;
    if (this.#isPending || this.#isClosed) return;
    this.#isPending = true;
    const { clock } = this.#options;
    const delayMs = Math.max(0, this.#lookedMs + refreshMsMin - clock.monotonicMs());
    this.#cancelNext = clock.schedule(delayMs, () => void this.#look());
  }

  /** Looks no more. */
  close(): void {
    this.#isClosed = true;
    this.#cancelNext?.();
  }

  async #look(): Promise<void> {
    const { clock, topology, nodes } = this.#options;
    this.#lookedMs = clock.monotonicMs();
    this.#lookCount += 1;
    const isFound = await this.#askAround();
    this.#isPending = false;
    if (this.#isClosed) return;
    if (!isFound) {
      this.doubt();
      return;
    }
    this.#hint = undefined;
    for (const address of topology.addresses) nodes.connection(address, "decision");
    nodes.closeOthers(topology.addresses);
  }

  /** Asks one node after the other; answers whether one of them told. */
  async #askAround(): Promise<boolean> {
    const { clock, topology } = this.#options;
    for (const address of await this.#candidates()) {
      try {
        const reply = await this.#ask(address, clock.monotonicMs() + askMsMax);
        const ranges = parseSlots(reply, splitAddress(address)?.host ?? "");
        if (ranges.length === 0) {
          throw new ServiceError("STORE_UNAVAILABLE", "No node of the cluster has any slots.");
        }
        topology.replace(ranges);
        this.#failure = undefined;
        return true;
      } catch (thrown) {
        this.#failure = toServiceError(thrown);
      }
    }
    return false;
  }

  async #ask(address: NodeAddress, deadlineMs: number): Promise<unknown> {
    const node = this.#options.nodes.connection(address, "decision");
    if (node === undefined) throw new ServiceError("STORE_CLOSED");
    return node.connection.clusterSlots(deadlineMs);
  }

  /** Nodes that can be asked now, another one first each time; the user's when there are none. */
  async #candidates(): Promise<readonly NodeAddress[]> {
    const { nodes, seeds, clock } = this.#options;
    const ready = nodes.readyAddresses("decision");
    if (ready.length > 0) {
      const first = this.#lookCount % ready.length;
      const turned = [...ready.slice(first), ...ready.slice(0, first)];
      const hinted = turned.filter((address) => address === this.#hint);
      return [...new Set([...hinted, ...turned])].slice(0, nodesAskedMax);
    }
    const opened = seeds.map((address) => nodes.connection(address, "decision"));
    const deadlineMs = clock.monotonicMs() + refreshMsMin;
    await Promise.race(opened.map((node) => node?.whenReady(deadlineMs)));
    const first = this.#lookCount % seeds.length;
    return [...seeds.slice(first), ...seeds.slice(0, first)].slice(0, nodesAskedMax);
  }
}
