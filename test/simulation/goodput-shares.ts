import type {
  PermitHolder,
  PermitShare,
  SharesPermits,
} from "../../src/core/admission/permit-share.js";
import {
  defaultShareHeartbeatMs,
  defaultShareLeaseMs,
} from "../../src/fleet/claims/permit-shares.js";
import type { EventCalendar } from "../../src/simulate/engine/calendar.js";
import { MemoryPermits } from "../../src/store/coordination/memory-permits.js";
import type { PermitAnswer } from "../../src/store/coordination/permit-store.js";

/** The store by which simulated replicas share limits. */
export class SimulatedPermits {
  readonly #calendar: EventCalendar;
  readonly #store: MemoryPermits;

  constructor(calendar: EventCalendar) {
    this.#calendar = calendar;
    this.#store = new MemoryPermits({ monotonicMs: () => calendar.nowMs });
  }

  /** What a replica shares by, whose heartbeats come at an offset of its own. */
  replica(replicaId: string, offsetMs: number): SimulatedShares {
    return new SimulatedShares({
      replicaId,
      offsetMs,
      calendar: this.#calendar,
      store: this.#store,
    });
  }
}

interface ReplicaParts {
  readonly replicaId: string;
  readonly offsetMs: number;
  readonly calendar: EventCalendar;
  readonly store: MemoryPermits;
}

/** Shares of one replica. */
export class SimulatedShares implements SharesPermits {
  readonly #parts: ReplicaParts;
  #isStopped = false;

  constructor(parts: ReplicaParts) {
    this.#parts = parts;
  }

  open(holder: PermitHolder): PermitShare {
    const { replicaId, offsetMs, calendar, store } = this.#parts;
    const share = new SimulatedShare(holder);
    const { name } = holder;
    const isLearned = holder.agreed !== undefined;
    let number = 0;
    const beat = (): void => {
      if (this.#isStopped) return;
      number += 1;
      const claim = { name, limit: holder.fleetLimit(), isLearned, ...share.tell() };
      share.hear(store.answer({ replicaId, number, leaseMs: defaultShareLeaseMs }, claim));
    };
    calendar.after(offsetMs, () => {
      beat();
      calendar.every(defaultShareHeartbeatMs, beat);
    });
    return share;
  }

  /** Its replica is lost: nothing is heard of it any more. */
  stop(): void {
    this.#isStopped = true;
  }
}

class SimulatedShare implements PermitShare {
  readonly #holder: PermitHolder;
  #answer: PermitAnswer = { grantedCount: 0, othersInUseCount: 0, limit: 0 };

  constructor(holder: PermitHolder) {
    this.#holder = holder;
  }

  tell(): { readonly heldCount: number; readonly neededCount: number } {
    const heldCount = Math.max(this.#holder.inUseCount(), this.#answer.grantedCount);
    return { heldCount, neededCount: this.#holder.takeDemand() };
  }

  hear(answer: PermitAnswer | undefined): void {
    if (answer === undefined) return;
    const before = this.#answer.grantedCount;
    this.#answer = answer;
    this.#holder.agreed?.(answer.limit);
    if (answer.grantedCount > before) this.#holder.shareGrew();
  }

  permits(): number {
    return this.#answer.grantedCount;
  }

  othersInUse(): number {
    return this.#answer.othersInUseCount;
  }

  isLeased(): boolean {
    return true;
  }

  close(): void {}
}
