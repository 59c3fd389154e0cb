import type { Clock } from "../../core/base/clock.js";
import {
  type FoundReport,
  type FoundSnapshot,
  gatherBytesMax,
  type LeaseAnswer,
  type LeaseBeat,
  type LoopStore,
  type ReportRecord,
  reportKeptMs,
} from "./loop-store.js";
import { compareRanks, type SnapshotVersion } from "./snapshot-version.js";

interface Lease {
  readonly term: number;
  readonly replicaId: string;
  /** The heartbeat by which it was last renewed. */
  readonly number: number;
  readonly untilMs: number;
}

/** The loop of the replicas of one process. */
export class MemoryLoop implements LoopStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #reports = new Map<string, FoundReport>();
  #lease: Lease | undefined;
  #lastTerm = 0;
  #snapshot: FoundSnapshot | undefined;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  async beat(beat: LeaseBeat): Promise<LeaseAnswer> {
    return { term: this.#termFor(beat), newest: this.#snapshot?.rank };
  }

  async resign(replicaId: string): Promise<void> {
    if (this.#lease?.replicaId === replicaId) this.#lease = undefined;
  }

  async tell(report: ReportRecord): Promise<void> {
    this.#reports.set(report.replicaId, { ...report, atMs: this.#clock.monotonicMs() });
  }

  async gather(): Promise<readonly FoundReport[]> {
    const nowMs = this.#clock.monotonicMs();
    let room = gatherBytesMax;
    for (const [id, { atMs }] of this.#reports) {
      if (nowMs - atMs >= reportKeptMs) this.#reports.delete(id);
    }
    return [...this.#reports.values()].map((report) => {
      const isTooLarge = report.bytes.length > room;
      if (!isTooLarge) room -= report.bytes.length;
      return isTooLarge ? { ...report, bytes: Buffer.alloc(0) } : report;
    });
  }

  async withdraw(replicaId: string): Promise<void> {
    this.#reports.delete(replicaId);
  }

  async fetch(): Promise<FoundSnapshot | undefined> {
    return this.#snapshot;
  }

  async publish(rank: SnapshotVersion, bytes: Buffer): Promise<boolean> {
    const lease = this.#heldLease();
    const isLeader = lease?.term === rank.term && lease.replicaId === rank.leaderId;
    const last = this.#snapshot?.rank;
    if (!isLeader || (last !== undefined && compareRanks(last, rank) > 0)) return false;
    this.#snapshot = { rank, bytes, atMs: this.#clock.monotonicMs() };
    return true;
  }

  #heldLease(): Lease | undefined {
    const isOver = (this.#lease?.untilMs ?? 0) <= this.#clock.monotonicMs();
    return isOver ? undefined : this.#lease;
  }

  #termFor({ replicaId, number, term, leaseMs, seen }: LeaseBeat): number {
    this.#lastTerm = Math.max(this.#lastTerm, seen.term);
    let held = this.#heldLease();
    if (held !== undefined && isBelow(held, seen)) held = undefined;
    if (held !== undefined && (held.replicaId !== replicaId || held.number > number)) return 0;
    const isSame = held !== undefined && (held.term === term || held.number === number);
    const next = held !== undefined && isSame ? held.term : this.#lastTerm + 1;
    this.#lastTerm = next;
    const untilMs = this.#clock.monotonicMs() + leaseMs;
    this.#lease = { term: next, replicaId, number, untilMs };
    return next;
  }
}

/** Whether nobody who has seen the other one would take the snapshots of this leader. */
function isBelow({ term, replicaId }: Lease, seen: SnapshotVersion): boolean {
  return compareRanks({ term, leaderId: replicaId, version: 0 }, { ...seen, version: 0 }) < 0;
}
