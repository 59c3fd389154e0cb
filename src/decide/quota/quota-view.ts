import type { LimitKey } from "../../core/limits/limit.js";
import type { QuotaAssignment, QuotaHolder, QuotaHolderState } from "../../core/quota/quota.js";
import type { DrivenPool } from "./driven-pool.js";
import { keysIdentity } from "./quota-reach.js";
import type { QuotaMember } from "./quota-sessions.js";

/** One bucket of one Envoy, as this replica knows it. */
export interface QuotaHolderView {
  /** The Envoy's name for itself (`x-headgate-node`), or its address. */
  readonly node: string;
  readonly weight: number;
  /**
   * The rate that it would use, admitted and denied, by its last report, in micro-hits per second.
   */
  readonly demandMicroHz: number;
  /** Its last assignment. Undefined before the first one. */
  readonly assignment: QuotaAssignment | undefined;
  /** The highest rate that may be active. */
  readonly heldMicroHz: number;
  /** Time since its last report, in milliseconds. */
  readonly ageMs: number;
  /** Whether its stream is closed. It counts until its assignment has ended. */
  readonly isLeft: boolean;
}

interface ViewParts {
  readonly pools: {
    values(): Iterable<DrivenPool>;
    find(identity: string): DrivenPool | undefined;
  };
  readonly nowMs: () => number;
  readonly memberOf: (holder: QuotaHolder) => QuotaMember | undefined;
}

/** The current assignments of this replica, for display. Read-only, computed on each read. */
export class QuotaView {
  readonly #parts: ViewParts;

  constructor(parts: ViewParts) {
    this.#parts = parts;
  }

  *pools(): Iterable<QuotaPoolView> {
    for (const pool of this.#parts.pools.values()) yield new QuotaPoolView(pool, this.#parts);
  }

  /**
   * The pool of a descriptor's keys, in the order of its limits. Undefined if it has no bucket
   * here.
   */
  poolOf(keys: readonly LimitKey[]): QuotaPoolView | undefined {
    const pool = this.#parts.pools.find(keysIdentity(keys));
    return pool && new QuotaPoolView(pool, this.#parts);
  }
}

/**
 * One pool, as this replica knows it: its limits and all buckets here that share them. Computes
 * nothing about its holders before they are requested, because there may be many pools.
 */
export class QuotaPoolView {
  readonly #pool: DrivenPool;
  readonly #parts: ViewParts;
  readonly #nowMs: number;

  constructor(pool: DrivenPool, parts: ViewParts) {
    this.#pool = pool;
    this.#parts = parts;
    this.#nowMs = parts.nowMs();
  }

  /** The quotas that use the pool, at least one. */
  get quotas(): readonly string[] {
    return this.#pool.quotaNames;
  }

  get domain() {
    return this.#pool.descriptor.domain;
  }

  /** The descriptor. Contains values of callers. */
  get entries() {
    return this.#pool.descriptor.entries;
  }

  /** The mode by its limits. After a lost lease, their `on_store_failure` applies instead. */
  get mode() {
    return this.#pool.reach.mode;
  }

  get limits() {
    return this.#pool.reach.limits;
  }

  /** The used hits of each limit by the store's last response. Undefined if there was none. */
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
      /** Time until the lease ends, in milliseconds; 0 if it has ended. */
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

  /** The holders with the highest demand, at most `most` of them. Computed on each call. */
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
