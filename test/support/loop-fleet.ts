import type { GateSettings } from "../../src/core/admission/gate.js";
import type { NodeReport, ShareSnapshot } from "../../src/core/feedback/feedback.js";
import type { ServicePressure } from "../../src/fleet/loop/report-format.js";
import { type LoopEvent, SharedLoop } from "../../src/fleet/loop/shared-loop.js";
import {
  compareRanks,
  lowestRank,
  parseRank,
  type SnapshotVersion,
} from "../../src/store/coordination/snapshot-version.js";
import { publishScript } from "../../src/store/redis/coordination/redis-loop.js";
import type {
  ScriptCall,
  ScriptReply,
  StoreConnection,
} from "../../src/store/redis/scripts/connection.js";
import { FakeClock, settlePromises } from "./fake-clock.js";
import type { FakeRandom } from "./fake-random.js";
import { TestMaker } from "./fleet-reports.js";
import { redisLoop } from "./redis-loop.js";
import { WaywardConnection } from "./wayward-connection.js";

/** What a `LoopFleet` is made of. */
export interface LoopFleetParts {
  readonly connection: StoreConnection;
  readonly random: FakeRandom;
  readonly keyPrefix: string;
  /** How long the store keeps a lease; its clock is the real one. Default an hour. */
  readonly leaseMs?: number;
  readonly gateSettings?: ReadonlyMap<string, GateSettings>;
}

/** One replica of a `LoopFleet`, with a clock of its own. */
export class LoopReplica {
  readonly id: string;
  readonly clock = new FakeClock();
  readonly events: LoopEvent[] = [];
  readonly bugs: unknown[] = [];
  readonly makers: TestMaker[] = [];
  readonly handedOut: ShareSnapshot[] = [];
  readonly connection: WaywardConnection;
  readonly loop: SharedLoop;
  /** Epochs of the snapshots that it sent to the store, whatever became of them. */
  readonly sentEpochs: number[] = [];
  pressures: readonly ServicePressure[] = [];
  /** Told of each maker when it is made. */
  onMaker = (_maker: TestMaker): void => {};

  constructor(id: string, parts: LoopFleetParts & { readonly onRun: () => void }) {
    this.id = id;
    this.connection = new WaywardConnection(parts);
    const connection: StoreConnection = { run: (call) => this.#run(call) };
    this.loop = new SharedLoop({
      clock: this.clock,
      id,
      store: redisLoop(connection, this.clock, parts.keyPrefix),
      leaseMs: parts.leaseMs ?? 3_600_000,
      createMaker: (start) => {
        const maker = new TestMaker(start);
        this.makers.push(maker);
        this.onMaker(maker);
        return maker;
      },
      pressures: () => this.pressures,
      gateSettings: () => parts.gateSettings ?? new Map(),
      onEvent: (event) => this.events.push(event),
      onBug: (thrown) => this.bugs.push(thrown),
    });
    this.loop.onSnapshot(() => this.#note());
  }

  /** Time passes here, and what that begins is done. */
  async pass(ms: number, stepMs = 250): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
      this.clock.advance(Math.min(stepMs, ms - passedMs));
      await this.settle();
    }
  }

  /** All calls to the store are answered, and those that they led to. */
  async settle(): Promise<void> {
    for (let quietRounds = 0; quietRounds < 2; ) {
      await this.connection.idle();
      this.clock.advance(0);
      await settlePromises();
      quietRounds = this.connection.pendingCount === 0 ? quietRounds + 1 : 0;
    }
  }

  async report(reports: readonly Partial<NodeReport>[], of: (wish: object) => NodeReport) {
    this.loop.report(reports.map((wish) => of({ atMs: this.clock.monotonicMs(), ...wish })));
    await this.settle();
  }

  /** Who does not lead by its own clock must not even send a snapshot. */
  #run(call: ScriptCall): Promise<ScriptReply> {
    if (call.script === publishScript) {
      if (!this.loop.isLeading) throw new Error(`${this.id} writes and does not lead`);
      this.sentEpochs.push(Number(call.args[0]));
    }
    return this.connection.run(call);
  }

  #note(): void {
    const snapshot = this.loop.current();
    if (snapshot !== undefined) this.handedOut.push(snapshot);
  }
}

/**
 * Replicas that share one loop over a real store, each moved by hand. Whatever happens, no replica
 * hands out a snapshot below one that it has handed out before, and each snapshot that the store
 * takes is above the one before.
 */
export class LoopFleet {
  readonly #parts: LoopFleetParts;
  readonly replicas: LoopReplica[] = [];
  /** Snapshots that the store took, in its order. */
  readonly published: SnapshotVersion[] = [];

  constructor(parts: LoopFleetParts) {
    this.#parts = parts;
  }

  async join(): Promise<LoopReplica> {
    const id = `${(this.replicas.length + 10).toString(16)}${this.#parts.random.id()}`;
    const connection: StoreConnection = { run: (call) => this.#run(call) };
    const onRun = (): void => this.#check();
    const replica = new LoopReplica(id, { ...this.#parts, connection, onRun });
    this.replicas.push(replica);
    await replica.settle();
    return replica;
  }

  get leaders(): readonly LoopReplica[] {
    return this.replicas.filter(({ loop }) => loop.isLeading);
  }

  async #run(call: ScriptCall): Promise<ScriptReply> {
    const reply = await this.#parts.connection.run(call);
    if (call.script !== publishScript || reply !== 1) return reply;
    const rank = parseRank(call.args.slice(0, 3).join(" "));
    const last = this.published.at(-1) ?? lowestRank;
    if (rank === undefined || compareRanks(rank, last) <= 0) {
      throw new Error(`the store took ${call.args.slice(0, 3)} after ${JSON.stringify(last)}`);
    }
    this.published.push(rank);
    return reply;
  }

  #check(): void {
    for (const { handedOut, id, bugs } of this.replicas) {
      if (bugs.length > 0) throw bugs[0];
      let last = lowestRank;
      for (const snapshot of handedOut) {
        if (compareRanks(snapshot, last) < 0) throw new Error(`${id} went back`);
        last = snapshot;
      }
    }
  }
}
