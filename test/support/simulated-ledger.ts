import type { Compensation } from "../../src/core/limits/compensation.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import type { StoreRequest, StoreResult } from "../../src/store/limit-store.js";

/** Hits by key. */
type Hits = Map<LimitKey, number>;

/**
 * What one replica asks its store for and what that sends: never more than was asked, however often
 * it is sent on. The calls of a batch are known by their deadline, which is the batch's.
 */
export class SimulatedLedger {
  /** By deadline: hits that were asked for and may still be sent. */
  readonly #unsent = new Map<number, Hits>();
  /** By deadline: hits of enforced charges that servers said they took, and are not to undo. */
  readonly #kept = new Map<number, Hits>();
  /** Hits of enforced charges that servers said they took. */
  readonly takenHits: Hits = new Map();

  /** A batch was asked for. */
  ask(batch: readonly StoreRequest[], deadlineMs: number): void {
    this.#add(batch, deadlineMs, 1);
  }

  /** A call leaves; answers the key of which more is sent than was asked for, if there is one. */
  send(batch: readonly StoreRequest[], deadlineMs: number): LimitKey | undefined {
    const unsent = this.#add(batch, deadlineMs, -1);
    for (const [key, hits] of unsent) if (hits < 0) return key;
    return undefined;
  }

  /** A call has certainly charged nothing, and may be sent again. */
  takeBack(batch: readonly StoreRequest[], deadlineMs: number): void {
    this.#add(batch, deadlineMs, 1);
  }

  /** A server told what it decided. */
  note(batch: readonly StoreRequest[], results: readonly StoreResult[], deadlineMs: number): void {
    const kept = this.#kept.get(deadlineMs) ?? new Map<LimitKey, number>();
    this.#kept.set(deadlineMs, kept);
    for (const [key, hits] of enforcedHits(batch, results)) {
      kept.set(key, (kept.get(key) ?? 0) + hits);
      this.takenHits.set(key, (this.takenHits.get(key) ?? 0) + hits);
    }
  }

  /** Charges are to be undone, and that may have been done. */
  giveBack(compensations: readonly Compensation[], deadlineMs: number): void {
    const kept = this.#kept.get(deadlineMs);
    for (const { key, cost } of compensations) {
      const hits = kept?.get(key);
      if (hits !== undefined) kept?.set(key, hits - cost);
    }
  }

  /** The store granted so much; answers the key of which less was taken, if there is one. */
  grant(
    batch: readonly StoreRequest[],
    results: readonly (StoreResult | undefined)[],
    deadlineMs: number,
  ): LimitKey | undefined {
    const kept = this.#kept.get(deadlineMs);
    for (const [key, hits] of enforcedHits(batch, results)) {
      if (hits > (kept?.get(key) ?? 0)) return key;
    }
    return undefined;
  }

  #add(batch: readonly StoreRequest[], deadlineMs: number, sign: 1 | -1): Hits {
    const hits = this.#unsent.get(deadlineMs) ?? new Map<LimitKey, number>();
    this.#unsent.set(deadlineMs, hits);
    for (const { charges, multiplicity } of batch) {
      for (const { key, cost } of charges) {
        hits.set(key, (hits.get(key) ?? 0) + sign * cost * multiplicity);
      }
    }
    return hits;
  }
}

/** What a batch took by enforced charges, by key; nothing where it has no result. */
function enforcedHits(
  batch: readonly StoreRequest[],
  results: readonly (StoreResult | undefined)[],
): Hits {
  const taken: Hits = new Map();
  batch.forEach(({ charges, multiplicity }, i) => {
    charges.forEach(({ key, cost, role, isRefund }, j) => {
      const isLeftOut = multiplicity === 1 && results[i]?.results[j]?.isOver !== false;
      if (role !== "enforce" || isRefund || isLeftOut) return;
      taken.set(key, (taken.get(key) ?? 0) + cost * (results[i]?.grantedCount ?? 0));
    });
  });
  return taken;
}
