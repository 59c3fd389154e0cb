import type { Clock } from "../../core/base/clock.js";
import type { QuotaLeaseAnswer } from "../../core/quota/quota-leases.js";
import type { CoordinationStore } from "./coordination-store.js";
import type { MemberStore } from "./member-store.js";
import { MemoryLedger } from "./memory-ledger.js";
import { MemoryLoop } from "./memory-loop.js";
import { MemoryPermits } from "./memory-permits.js";
import { MemoryQuestions } from "./memory-questions.js";
import { MemoryRecords } from "./memory-records.js";
import { type LeaseRecords, takeClaim } from "./quota-lease-law.js";
import type { QuotaClaims, QuotaStore } from "./quota-store.js";

/** Coordination within one process: its one replica, or those of a test. */
export function createMemoryCoordination(clock: Clock): CoordinationStore {
  return {
    isShared: false,
    records: new MemoryRecords(clock),
    loop: new MemoryLoop(clock),
    members: new MemoryMembers(clock),
    permits: new MemoryPermits(clock),
    quotas: new MemoryQuotas(clock),
    questions: new MemoryQuestions(clock),
    ledger: new MemoryLedger(clock),
  };
}

/** The replicas of one process. */
class MemoryMembers implements MemberStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** When they end, by name. */
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

/** How often pools that are over are looked for, in exchanges. */
const sweepEveryCount = 64;

/** Divides pools among the replicas of one process. */
export class MemoryQuotas implements QuotaStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #pools = new Map<string, LeaseRecords>();
  #exchangeCount = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  async exchange(claims: QuotaClaims): Promise<readonly QuotaLeaseAnswer[]> {
    const { replicaId: replica, number: beat, asks } = claims;
    const nowMs = this.#clock.monotonicMs();
    this.#exchangeCount += 1;
    if (this.#exchangeCount % sweepEveryCount === 0) this.#forgetEnded(nowMs);
    return asks.map(({ pool, claim, leaseMs }): QuotaLeaseAnswer => {
      const records: LeaseRecords = this.#pools.get(pool) ?? new Map();
      this.#pools.set(pool, records);
      const taken = takeClaim(records, { replica, beat, claim, leaseMs }, nowMs);
      if (taken === undefined) return { kind: "overtaken" };
      return { kind: "leased", lease: { ...taken, untilMs: nowMs + leaseMs } };
    });
  }

  #forgetEnded(nowMs: number): void {
    for (const [pool, records] of this.#pools) {
      if ([...records.values()].every(({ untilMs }) => untilMs <= nowMs)) this.#pools.delete(pool);
    }
  }
}
