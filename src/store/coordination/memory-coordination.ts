import type { Clock } from "../../core/base/clock.js";
import type { QuotaLeaseAnswer } from "../../core/quota/quota.js";
import type { OwnCoordination } from "./coordination-store.js";
import {
  type LedgerAuthor,
  type LedgerEntry,
  type LedgerStore,
  type LedgerSums,
  ledgerKeptSeconds,
  ledgerNamesMax,
} from "./ledger-store.js";
import {
  type FoundReport,
  type FoundSnapshot,
  gatherBytesMax,
  type KnownReport,
  type LeaseAnswer,
  type LeaseBeat,
  type LoopStore,
  type ReportRecord,
  reportKeptMs,
} from "./loop-store.js";
import type { MemberStore } from "./member-store.js";
import { MemoryBudgets } from "./memory-budgets.js";
import { MemoryRecords } from "./memory-records.js";
import { MemoryRooms } from "./memory-rooms.js";
import { type LeaseRecords, takeClaim } from "./quota-lease-law.js";
import type { QuotaClaims, QuotaStore } from "./quota-store.js";
import { compareRanks, type SnapshotVersion } from "./snapshot-version.js";

/** Creates coordination within one process: for its one replica, or for those of a test. */
export function createMemoryCoordination(clock: Clock): OwnCoordination {
  return {
    isShared: false,
    records: new MemoryRecords(clock),
    loop: new MemoryLoop(clock),
    members: new MemoryMembers(clock),
    quotas: new MemoryQuotas(clock),
    ledger: new MemoryLedger(clock),
    rooms: new MemoryRooms(clock),
    budgets: new MemoryBudgets(clock),
  };
}

/** The replicas of one process. */
class MemoryMembers implements MemberStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Ends of their leases, by replica id. */
  readonly #untilMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  async join({ replicaId, leaseMs }: Parameters<MemberStore["join"]>[0]): Promise<number> {
    const nowMs = this.#clock.monotonicMs();
    for (const [id, untilMs] of this.#untilMs) if (untilMs <= nowMs) this.#untilMs.delete(id);
    this.#untilMs.set(replicaId, nowMs + leaseMs);
    return this.#untilMs.size;
  }

  async leave(replicaId: string): Promise<void> {
    this.#untilMs.delete(replicaId);
  }
}

/** Pools checked for expiry per claim. Checking all of them takes too long. */
const looksPerClaim = 2;

/** Divides pools among the replicas of one process. */
export class MemoryQuotas implements QuotaStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #pools = new Map<string, LeaseRecords>();
  #sweep = this.#pools.entries();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  async exchange(claims: QuotaClaims): Promise<readonly QuotaLeaseAnswer[]> {
    const { replicaId: replica, number: beat, asks } = claims;
    const nowMs = this.#clock.monotonicMs();
    for (let i = 0; i < looksPerClaim * asks.length; i += 1) this.#forgetNext(nowMs);
    return asks.map(({ pool, claim, leaseMs }): QuotaLeaseAnswer => {
      const records: LeaseRecords = this.#pools.get(pool) ?? new Map();
      this.#pools.set(pool, records);
      const taken = takeClaim(records, { replica, beat, claim, leaseMs }, nowMs);
      if (taken === undefined) return { kind: "overtaken" };
      const { rateMicroHz, elsewhere } = taken;
      return { kind: "leased", lease: { rateMicroHz, elsewhere, untilMs: nowMs + leaseMs } };
    });
  }

  #forgetNext(nowMs: number): void {
    const next = this.#sweep.next();
    if (next.done === true) {
      this.#sweep = this.#pools.entries();
      return;
    }
    const [pool, records] = next.value;
    for (const { untilMs } of records.values()) if (untilMs > nowMs) return;
    this.#pools.delete(pool);
  }
}

interface Run {
  readonly sums: Map<string, number>;
  /** Number of the last entry of each replica. */
  readonly numbers: Map<string, number>;
  endsMs: number;
}

/** Maximum number of runs at a time. The oldest one is removed. */
const runsMax = 16;

/** Keeps the sums of the replicas of one process. */
export class MemoryLedger implements LedgerStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #runs = new Map<string, Run>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  async add(entry: LedgerEntry, author: LedgerAuthor): Promise<LedgerSums | undefined> {
    const run = this.#runOf(entry);
    if (run === undefined) return undefined;
    if (author.number > (run.numbers.get(author.replicaId) ?? 0)) {
      run.numbers.set(author.replicaId, author.number);
      for (const [name, count] of entry.counts) {
        if (!run.sums.has(name) && run.sums.size >= ledgerNamesMax) continue;
        run.sums.set(name, (run.sums.get(name) ?? 0) + count);
      }
    }
    return new Map(run.sums);
  }

  #runOf({ run: name, begins, isLookedAt }: LedgerEntry): Run | undefined {
    const nowMs = this.#clock.monotonicMs();
    for (const [id, { endsMs }] of this.#runs) if (endsMs <= nowMs) this.#runs.delete(id);
    const known = this.#runs.get(name);
    if (known === undefined && !begins) return undefined;
    const endsMs = nowMs + 1_000 * ledgerKeptSeconds;
    const run = known ?? { sums: new Map(), numbers: new Map(), endsMs };
    if (isLookedAt) run.endsMs = endsMs;
    if (known === undefined) this.#runs.set(name, run);
    for (const oldest of this.#runs.keys()) {
      if (this.#runs.size <= runsMax) break;
      this.#runs.delete(oldest);
    }
    return run;
  }
}

interface Lease {
  readonly term: number;
  readonly replicaId: string;
  /** Number of the heartbeat that last renewed the lease. */
  readonly number: number;
  readonly untilMs: number;
}

interface KeptReport extends FoundReport {
  readonly base: NonNullable<FoundReport["base"]>;
}

const nothingKnown: KnownReport = { number: 0, baseNumber: 0 };

/** Leases, reports and the snapshot of the replicas of one process. */
class MemoryLoop implements LoopStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #reports = new Map<string, KeptReport>();
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

  async tell({ replicaId, number, baseNumber, bytes }: ReportRecord): Promise<boolean> {
    const atMs = this.#clock.monotonicMs();
    const last = this.#reports.get(replicaId);
    const base = baseNumber === undefined ? { number, bytes } : last?.base;
    if (base === undefined || base.number !== (baseNumber ?? number)) return false;
    this.#reports.set(replicaId, { replicaId, number, atMs, bytes, base });
    return true;
  }

  async gather(known: ReadonlyMap<string, KnownReport>): Promise<readonly FoundReport[]> {
    const nowMs = this.#clock.monotonicMs();
    let room = gatherBytesMax;
    for (const [id, { atMs }] of this.#reports) {
      if (nowMs - atMs >= reportKeptMs) this.#reports.delete(id);
    }
    return [...this.#reports.values()].map((report): FoundReport => {
      const { number, baseNumber } = known.get(report.replicaId) ?? nothingKnown;
      const { base } = report;
      const isOwnBase = base.number === report.number || base.number === baseNumber;
      const costBytes = report.bytes.length + (isOwnBase ? 0 : base.bytes.length);
      if (report.number <= number || costBytes > room) {
        return { ...report, bytes: Buffer.alloc(0), base: undefined };
      }
      room -= costBytes;
      return isOwnBase ? { ...report, base: undefined } : report;
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

/** Reports whether a replica that has seen this version would reject the leader's snapshots. */
function isBelow({ term, replicaId }: Lease, seen: SnapshotVersion): boolean {
  return compareRanks({ term, leaderId: replicaId, version: 0 }, { ...seen, version: 0 }) < 0;
}
