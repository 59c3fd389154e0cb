import type { QuotaHolder, QuotaHolderState } from "../../core/quota/quota.js";
import type { DrivenPool } from "./driven-pool.js";
import { keysIdentity } from "./quota-reach.js";
import type { QuotaMember } from "./quota-sessions.js";
import type { QuotaHolderView, QuotaPoolView, QuotaView } from "./quota-view.js";

interface ViewParts {
  readonly pools: {
    values(): Iterable<DrivenPool>;
    find(identity: string): DrivenPool | undefined;
  };
  readonly nowMs: () => number;
  readonly memberOf: (holder: QuotaHolder) => QuotaMember | undefined;
}

/** A view of the current assignments, computed on each read. */
export function viewOf(parts: ViewParts): QuotaView {
  return {
    *pools() {
      for (const pool of parts.pools.values()) yield new PoolView(pool, parts);
    },
    poolOf: (keys) => {
      const pool = parts.pools.find(keysIdentity(keys));
      return pool && new PoolView(pool, parts);
    },
  };
}

/**
 * Computes nothing about its holders before they are requested, because there may be many pools.
 */
class PoolView implements QuotaPoolView {
  readonly #pool: DrivenPool;
  readonly #parts: ViewParts;
  readonly #nowMs: number;

  constructor(pool: DrivenPool, parts: ViewParts) {
    this.#pool = pool;
    this.#parts = parts;
    this.#nowMs = parts.nowMs();
  }

  get quotas() {
    return [...this.#pool.quotas.keys()];
  }

  get domain() {
    return this.#pool.descriptor.domain;
  }

  get entries() {
    return this.#pool.descriptor.entries;
  }

  get mode() {
    return this.#pool.reach.mode;
  }

  get limits() {
    return this.#pool.reach.limits;
  }

  get levelHits() {
    const levels = this.#pool.law.levels(this.#nowMs);
    return this.limits.map((_, i) => levels?.[i]);
  }

  get lease() {
    const { lease } = this.#pool;
    const leftMs = lease.untilMs - this.#nowMs;
    return {
      state: this.#pool.leaseState(this.#nowMs),
      rateMicroHz: leftMs > 0 ? lease.rateMicroHz : 0,
      leftMs: Math.max(0, Math.min(leftMs, Number.MAX_SAFE_INTEGER)),
    };
  }

  get demandMicroHz() {
    return this.#pool.law.demandMicroHz;
  }

  get heldMicroHz() {
    return this.#pool.law.rates(this.#nowMs).heldMicroHz;
  }

  get holderCount() {
    return this.#pool.law.countedCount;
  }

  holders(most: number): readonly QuotaHolderView[] {
    const states = this.#pool.law.states(this.#nowMs);
    const sorted = [...states].sort((a, b) => b.demandMicroHz - a.demandMicroHz);
    return sorted.slice(0, most).map((state) => this.#holder(state));
  }

  #holder(state: QuotaHolderState): QuotaHolderView {
    const { weight, demandMicroHz, assignment, heldMicroHz, reportedMs, isLeft } = state;
    const node = this.#parts.memberOf(state.holder)?.session.node ?? "";
    const ageMs = this.#nowMs - reportedMs;
    return { node, weight, demandMicroHz, assignment, heldMicroHz, ageMs, isLeft };
  }
}
