import { microHzPerHz, type QuotaLease, type QuotaPoolSettings } from "../../core/quota/quota.js";
import { limitHz } from "../../core/quota/quota-ceiling.js";
import type { QuotaHolders } from "../../core/quota/quota-holders.js";
import { QuotaPool } from "../../core/quota/quota-pool.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import { poolSettings, type QuotaReach, type ReachDescriptor } from "./quota-reach.js";

/** The state of this replica's lease of a pool. */
export type QuotaLeaseState =
  /** The first claim has not been answered: nothing is assigned. */
  | "claiming"
  /** Assignments are made from the lease. */
  | "leased"
  /** Claims fail, and the last lease is still valid. */
  | "unrenewed"
  /** The last lease has ended: the limits' `on_store_failure` applies. */
  | "lost";

interface DrivenPoolParts {
  /** Identifies it at all replicas. Contains no text from callers. */
  readonly name: string;
  readonly reach: QuotaReach;
  /** The first descriptor that created it. */
  readonly descriptor: ReachDescriptor;
  readonly quota: QuotaPolicy;
  readonly holders: QuotaHolders;
  readonly nowMs: number;
}

/** Unanswered claims after which a pool without a first lease falls back. */
const firstClaimsMax = 3;

const nowhere: QuotaLease["elsewhere"] = [];

const noLease: QuotaLease = {
  rateMicroHz: 0,
  untilMs: Number.NEGATIVE_INFINITY,
  elsewhere: nowhere,
};

/** Bounds of the interval at which admitted hits are charged, in milliseconds. */
const chargeEveryMs = { least: 100, most: 1_000 } as const;

/** A pool of this replica together with its limits, its lease and its schedule. */
export class DrivenPool {
  readonly name: string;
  readonly descriptor: ReachDescriptor;
  readonly law: QuotaPool;
  /** The quotas that use this pool, each name once. Nearly always one. */
  #quotas: readonly QuotaPolicy[];
  #reach: QuotaReach;
  #lease = noLease;
  #failedCount = 0;
  #isFallenBack = false;
  /** When it is charged and claimed next. */
  chargeMs: number;
  claimMs: number;
  /** When it is visited next: of many pools, few have anything to do in a tick. */
  lookMs: number;
  isCharging = false;
  isClaiming = false;

  constructor({ name, reach, descriptor, quota, holders, nowMs }: DrivenPoolParts) {
    this.name = name;
    this.descriptor = descriptor;
    this.#quotas = reach.plan.useOf(quota).quotas;
    this.#reach = reach;
    this.law = new QuotaPool({ settings: this.#settings(), holders, nowMs });
    this.chargeMs = nowMs;
    this.claimMs = nowMs;
    this.lookMs = nowMs;
  }

  get quotaNames(): readonly string[] {
    return this.#quotas.map(({ name }) => name);
  }

  get reach(): QuotaReach {
    return this.#reach;
  }

  get lease(): QuotaLease {
    return this.#lease;
  }

  /** Whether replicas divide it. Without a limit, there is nothing to divide. */
  get isLeased(): boolean {
    return this.#reach.mode === "limited";
  }

  leaseState(nowMs: number): QuotaLeaseState {
    if (nowMs < this.#lease.untilMs) return this.#failedCount === 0 ? "leased" : "unrenewed";
    const hadLease = this.#lease.untilMs !== Number.NEGATIVE_INFINITY;
    return hadLease || this.#failedCount >= firstClaimsMax ? "lost" : "claiming";
  }

  /** The time to live of its assignments. */
  get ttlMs(): number {
    return this.law.settings.ttlMs;
  }

  /** Applies changed limits, or adds another quota that uses this pool. */
  configure(reach: QuotaReach, quota: QuotaPolicy, nowMs: number): void {
    if (this.#quotas.includes(quota) && isSame(reach, this.#reach)) return;
    const others = this.#quotas.filter(({ name }) => name !== quota.name);
    this.#quotas = others.length === 0 ? reach.plan.useOf(quota).quotas : [...others, quota];
    // A lease that ended while there was nothing to divide is not lost: claim it as the first one.
    if (!this.isLeased && this.#lease.untilMs <= nowMs) {
      this.#lease = noLease;
      this.#failedCount = 0;
      this.#isFallenBack = false;
    }
    this.#reach = reach;
    this.#apply(nowMs);
  }

  /** The charge interval: half of the time in which its burst drains. */
  get chargeEveryMs(): number {
    let leastMs: number = chargeEveryMs.most;
    for (const limit of this.#reach.limits) {
      leastMs = Math.min(leastMs, (limit.burst * 500) / limitHz(limit));
    }
    return Math.max(chargeEveryMs.least, leastMs);
  }

  /** Applies a new lease. */
  take({ rateMicroHz, untilMs, elsewhere: told }: QuotaLease, nowMs: number): void {
    const elsewhere = told.some(({ count }) => count > 0) ? told : nowhere;
    const lease = { rateMicroHz, untilMs, elsewhere };
    this.#lease = lease;
    this.#failedCount = 0;
    if (this.#isFallenBack) {
      this.#isFallenBack = false;
      this.#apply(nowMs);
    }
    this.law.lease(lease, nowMs);
  }

  /** Records that a claim was not answered. */
  noteFailed(): void {
    this.#failedCount += 1;
  }

  /**
   * Continues without a lease, by the `on_store_failure` of its limits. `error` renews no
   * assignment, so that the quota's own setting for expired assignments applies in the Envoys.
   *
   * @param replicaCount how many replicas share the limits, at least 1
   */
  fallBack(replicaCount: number, nowMs: number): void {
    const isFirst = !this.#isFallenBack;
    this.#isFallenBack = true;
    const { onStoreFailure, limits } = this.#reach;
    if (onStoreFailure === "local") {
      const hz = Math.min(...limits.map(limitHz)) / replicaCount;
      const untilMs = nowMs + 2 * this.ttlMs;
      const rateMicroHz = Math.floor(hz * microHzPerHz);
      this.law.lease({ rateMicroHz, untilMs, elsewhere: this.#lease.elsewhere }, nowMs);
    } else if (isFirst) this.#apply(nowMs);
  }

  #apply(nowMs: number): void {
    this.lookMs = nowMs;
    this.law.configure(this.#settings(), nowMs);
  }

  #settings(): QuotaPoolSettings {
    const mode = this.#mode();
    const { plan, limits } = this.#reach;
    const [quota, other] = this.#quotas;
    const isShared = mode === plan.parts.mode && other === undefined;
    if (isShared && quota !== undefined) return plan.useOf(quota).settings;
    return poolSettings({ mode, limits }, this.#quotas);
  }

  #mode(): QuotaPoolSettings["mode"] {
    const { mode, onStoreFailure } = this.#reach;
    if (!this.#isFallenBack || mode !== "limited") return mode;
    if (onStoreFailure === "allow") return "counted";
    return onStoreFailure === "deny" ? "denied" : mode;
  }
}

/** Whether nothing has changed that affects a pool. */
function isSame(one: QuotaReach, other: QuotaReach): boolean {
  if (one.plan === other.plan) return true;
  return (
    one.mode === other.mode &&
    one.onStoreFailure === other.onStoreFailure &&
    one.limits.length === other.limits.length &&
    one.chargeCount === other.chargeCount &&
    one.limits.every((limit, i) => {
      const was = other.limits[i];
      const { hits, periodUs, burst } = limit;
      return was?.hits === hits && was.periodUs === periodUs && was.burst === burst;
    })
  );
}
