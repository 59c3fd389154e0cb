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
  /** The configured nodes, asked if no other node can be reached. */
  readonly seeds: readonly NodeAddress[];
  readonly topology: ClusterTopology;
  readonly nodes: NodeLinks;
  readonly clock: Clock;
}

/** Minimum time between two refreshes, whatever fails. */
export const refreshMsMin = 250;

/** Maximum wait for one node before the next one is asked. */
const askMsMax = 500;

/** Maximum number of nodes asked in one refresh. The first answer is used. */
const nodesAskedMax = 5;

/**
 * Keeps the view of a cluster up to date. Asks nodes at start until one answers, and again if a
 * call found that the view may be outdated. A node's answer is used as it is: if it is outdated
 * too, the cluster redirects the next call.
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

  /** Starts a refresh at once. */
  constructor(options: ClusterRefreshOptions) {
    this.#options = options;
    this.doubt();
  }

  /** Error of the last refresh; undefined after a successful one and before the first has ended. */
  get failure(): ServiceError | undefined {
    return this.#failure;
  }

  /** Refreshes soon. The hint is a node that probably knows the current slots. */
  doubt(hint?: NodeAddress): void {
    this.#hint = hint ?? this.#hint;
    if (this.#isPending || this.#isClosed) return;
    this.#isPending = true;
    const { clock } = this.#options;
    const delayMs = Math.max(0, this.#lookedMs + refreshMsMin - clock.monotonicMs());
    this.#cancelNext = clock.schedule(delayMs, () => void this.#look());
  }

  /** Stops refreshing. */
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

  /** Asks one node after the other. Returns whether one of them gave a valid answer. */
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

  /** Returns the ready nodes, starting at another one each time; the configured ones if none is. */
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
