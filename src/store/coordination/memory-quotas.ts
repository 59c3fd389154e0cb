import type { Clock } from "../../core/base/clock.js";
import type { QuotaLeaseAnswer } from "../../core/quota/quota-leases.js";
import { type LeaseRecords, takeClaim } from "./quota-lease-law.js";
import type { QuotaClaims, QuotaStore } from "./quota-store.js";

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
