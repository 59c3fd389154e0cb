import type { Random } from "../../src/core/base/clock.js";
import { FakeRandom } from "../support/fake-random.js";
import { type EnvoyCounts, SimulatedEnvoy } from "./control-envoy.js";
import { type ClusterSecond, encodeNode, FlushLayout, LoadLayout } from "./control-messages.js";

/** A fleet of simulated Envoys. */
export interface ControlFleetOrder {
  readonly port: number;
  readonly nodeCount: number;
  /** Services, each with a cluster in every Envoy. */
  readonly serviceCount: number;
}

/** What a fleet says of itself each second, as a line. */
export interface ControlFleetLine extends EnvoyCounts {
  /** Bytes of one flush, and of one load report. */
  readonly flushBytes: number;
  readonly reportBytes: number;
}

/** Connections that are opened in one go. */
const connectCount = 20;

/** How often it is looked at who is due, in milliseconds. */
const tickMs = 5;

/**
 * Connects so many Envoys; each flushes its statistics and reports its load once a second, at times
 * that are spread over it. Ends with its process.
 */
export class ControlFleet {
  readonly counts: EnvoyCounts = {
    flushCount: 0,
    reportCount: 0,
    layerCount: 0,
    layerBytes: 0,
    skippedCount: 0,
    endedCount: 0,
  };
  readonly #order: ControlFleetOrder;
  readonly #layout: FlushLayout;
  readonly #reportBytes: number;
  readonly #random = new FakeRandom(1);
  #envoys: SimulatedEnvoy[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(order: ControlFleetOrder) {
    this.#order = order;
    this.#layout = new FlushLayout(order.serviceCount);
    this.#reportBytes = new LoadLayout(encodeNode("edge-0"), order.serviceCount).byteCount;
  }

  /** What it says of itself. */
  get line(): ControlFleetLine {
    const { byteCount: flushBytes } = this.#layout;
    return { ...this.counts, flushBytes, reportBytes: this.#reportBytes };
  }

  /** Connects all, some at a time, and begins. */
  async start(): Promise<void> {
    const { port, nodeCount, serviceCount: clusterCount } = this.#order;
    for (let i = 0; i < nodeCount; i += 1) {
      const { counts } = this;
      const parts = { id: `edge-${i}`, port, clusterCount, layout: this.#layout, counts };
      this.#envoys.push(new SimulatedEnvoy(parts));
      if (i % connectCount === 0) await new Promise((resolve) => setTimeout(resolve, tickMs));
    }
    const beganMs = performance.now();
    let doneCount = 0;
    this.#timer = setInterval(() => {
      const dueCount = Math.floor(((performance.now() - beganMs) / 1_000) * nodeCount);
      for (; doneCount < dueCount; doneCount += 1) this.#serve(doneCount);
    }, tickMs);
  }

  close(): void {
    clearInterval(this.#timer);
    for (const envoy of this.#envoys) envoy.close();
    this.#envoys = [];
  }

  /** One Envoy flushes, and one on the other side of the second reports. */
  #serve(turn: number): void {
    const { nodeCount } = this.#order;
    this.#envoys[turn % nodeCount]?.flush(this.#seconds(), Date.now());
    const reportTurn = turn + Math.floor(nodeCount / 2);
    this.#envoys[reportTurn % nodeCount]?.report(this.#seconds());
  }

  #seconds(): readonly ClusterSecond[] {
    return Array.from({ length: this.#order.serviceCount }, () => secondOf(this.#random));
  }
}

/** Never the same for two seconds; within a share of twenty. */
function secondOf(random: Random): ClusterSecond {
  const active = Math.floor(20 * random.next());
  const overflowed = random.next() < 0.3 ? Math.floor(random.next() * 50) : 0;
  return {
    active,
    completed: active * 20 + overflowed,
    failed: overflowed,
    overflowed,
    remaining: 20 - active,
    meanMs: 50 + 20 * random.next(),
  };
}
