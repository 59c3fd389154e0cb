import type { Cancel, Clock } from "../../core/base/clock.js";
import { type ErrorCode, toServiceError } from "../../core/base/errors.js";
import { type Charge, levelAt, unitsPerHit } from "../../core/limits/bucket.js";
import {
  type LeasesQuotas,
  type QuotaChange,
  type QuotaLeaseAnswer,
  quotaLeaseSlackMs,
} from "../../core/quota/quota.js";
import { QuotaHolders, quotaHoldersMax } from "../../core/quota/quota-holders.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import {
  batchChargesMax,
  type LimitStore,
  type StoreOutcome,
  type StoreRequest,
} from "../../store/limit-store.js";
import { DrivenPool } from "./driven-pool.js";
import type { QuotaCounts } from "./quota-counts.js";
import type { QuotaReach, ReachDescriptor } from "./quota-reach.js";

/** An event about the leases of this replica. Sent once, not for each pool. */
export type QuotaLeaseEvent =
  /** Claims fail. The previous leases stay valid until they end. */
  | { readonly kind: "quotaLeasesUnrenewed"; readonly code: ErrorCode }
  /** A lease has ended. The `on_store_failure` of its limits applies. */
  | { readonly kind: "quotaLeasesLost" }
  | { readonly kind: "quotaLeasesFound" };

interface QuotaPoolsParts {
  readonly store: Pick<LimitStore, "take">;
  readonly leases: LeasesQuotas;
  readonly clock: Clock;
  readonly counts: QuotaCounts;
  /** A cryptographic hash in hexadecimal. */
  readonly digest: (text: string) => string;
  /** The current number of replicas that share the limits, at least 1. */
  readonly replicaCount: () => number;
  /** The percentage of all buckets that one identity may have, 1 to 100. Default 100. */
  readonly identityPercentMax?: number;
  /** Approximate maximum size of all buckets, in bytes. Default: unlimited. */
  readonly bucketsBytesMax?: number;
  /** Receives each message for a holder. */
  readonly tell: (change: QuotaChange) => void;
  readonly onEvent: (event: QuotaLeaseEvent) => void;
  /** Receives each internal error. */
  readonly onBug: (thrown: unknown) => void;
}

/** Tick interval of all pools, in milliseconds. */
export const poolsTickMs = 100;

/** Claim interval of a pool, in milliseconds. */
const claimEveryMs = 1_000;

/** Timeout of a charge, in milliseconds. No request waits for it. */
const chargeMsMax = 250;

/** Maximum time between two visits to a pool, in milliseconds: rounds are not more frequent. */
const lookEveryMs = 250;

/** Work per turn of the event loop, in visits to a holder, which take about 0.2 us each. */
const visitsPerTurn = 5_000;

/** What a pool costs at least, and what a round, a charge and a claim cost on top, in visits. */
const poolVisits = { look: 5, round: 10, charge: 30, claim: 30 } as const;

/** Maximum claims in one exchange. Their answers are handled in one turn of the event loop. */
const claimsPerExchange = 200;

/** Pause after a failed store call, in milliseconds. */
const storePauseMs = 500;

/**
 * Drives the pools of this replica: charges what Envoys have admitted to the store, exchanges
 * claims with the other replicas, and runs the rounds of each pool.
 */
export class QuotaPools {
  readonly holders: QuotaHolders;
  readonly #parts: QuotaPoolsParts;
  readonly #pools = new Map<string, DrivenPool>();
  /** Pools that wait for their first lease. */
  readonly #new = new Set<DrivenPool>();
  #cancelTurn: Cancel | undefined;
  #quietUntilMs = Number.NEGATIVE_INFINITY;
  #isUnrenewed = false;
  #isLost = false;

  constructor(parts: QuotaPoolsParts) {
    this.#parts = parts;
    const { identityPercentMax = 100, bucketsBytesMax: keptBytesMax } = parts;
    const identityHoldersMax = Math.floor((quotaHoldersMax * identityPercentMax) / 100);
    this.holders = new QuotaHolders({
      identityHoldersMax: Math.max(1, identityHoldersMax),
      identityPercentMax,
      ...(keptBytesMax === undefined ? {} : { keptBytesMax }),
    });
  }

  get count(): number {
    return this.#pools.size;
  }

  values(): Iterable<DrivenPool> {
    return this.#pools.values();
  }

  /** Finds a pool by the identity of what its buckets reach. */
  find(identity: string): DrivenPool | undefined {
    return this.#pools.get(identity);
  }

  /** Returns the pool of a bucket's reach, with current settings. Creates it if needed. */
  reach(reach: QuotaReach, descriptor: ReachDescriptor, quota: QuotaPolicy): DrivenPool {
    const nowMs = this.#parts.clock.monotonicMs();
    const known = this.#pools.get(reach.identity);
    if (known !== undefined) {
      known.configure(reach, quota, nowMs);
      if (known.isLeased && known.lease.untilMs < nowMs) this.#claimSoon(known);
      return known;
    }
    const name = this.#parts.digest(reach.identity);
    const { holders } = this;
    const made = new DrivenPool({ name, reach, descriptor, quota, holders, nowMs });
    this.#pools.set(reach.identity, made);
    this.#claimSoon(made);
    return made;
  }

  /**
   * Runs one tick of all pools, every `poolsTickMs`, in several turns of the event loop: visiting
   * each holder of a large replica takes too long for one turn.
   */
  *tick(): Generator<undefined, void> {
    let nowMs = this.#parts.clock.monotonicMs();
    let charged: DrivenPool[] = [];
    let claimed: DrivenPool[] = [];
    let visitCount = 0;
    const send = (): void => {
      if (nowMs >= this.#quietUntilMs) this.#charge(charged, nowMs);
      this.#claim(claimed);
      charged = [];
      claimed = [];
      visitCount = 0;
    };
    for (const [identity, pool] of this.#pools) {
      if (nowMs < pool.lookMs) continue;
      const isDue = pool.law.isDue(nowMs);
      const isClaimed = pool.isLeased && nowMs >= pool.claimMs && !pool.isClaiming;
      if (pool.isLeased && pool.leaseState(nowMs) === "lost") this.#fallBack(pool, nowMs);
      if (isDue) this.#divide(pool, nowMs);
      const isCharged = nowMs >= pool.chargeMs && !pool.isCharging;
      if (isCharged) charged.push(pool);
      if (isClaimed) claimed.push(pool);
      pool.lookMs = nextLookMs(pool, nowMs);
      const isIdle = !pool.isCharging && !pool.isClaiming;
      if (pool.law.countedCount === 0 && isIdle) this.#pools.delete(identity);
      visitCount += poolVisits.look + (isDue || isClaimed ? pool.law.countedCount : 0);
      if (isDue) visitCount += poolVisits.round;
      if (isCharged) visitCount += poolVisits.charge;
      if (isClaimed) visitCount += poolVisits.claim;
      if (visitCount < visitsPerTurn && claimed.length < claimsPerExchange) continue;
      send();
      yield undefined;
      nowMs = this.#parts.clock.monotonicMs();
    }
    send();
  }

  /** Stops sending new claims. */
  close(): void {
    this.#cancelTurn?.();
    this.#new.clear();
  }

  #divide({ law }: DrivenPool, nowMs: number): void {
    for (const change of law.rebalance(nowMs)) this.#parts.tell(change);
  }

  #fallBack(pool: DrivenPool, nowMs: number): void {
    if (!this.#isLost) this.#parts.onEvent({ kind: "quotaLeasesLost" });
    this.#isLost = true;
    pool.fallBack(this.#parts.replicaCount(), nowMs);
  }

  #claimSoon(pool: DrivenPool): void {
    if (!pool.isLeased || pool.isClaiming) return;
    this.#new.add(pool);
    this.#cancelTurn ??= this.#parts.clock.scheduleTurn(() => {
      this.#cancelTurn = undefined;
      const pools: DrivenPool[] = [];
      for (const one of this.#new) {
        this.#new.delete(one);
        if (!one.isClaiming) pools.push(one);
        if (pools.length >= claimsPerExchange) break;
      }
      this.#claim(pools);
      const [next] = this.#new;
      if (next !== undefined) this.#claimSoon(next);
    });
  }

  #claim(pools: readonly DrivenPool[]): void {
    if (pools.length === 0) return;
    const nowMs = this.#parts.clock.monotonicMs();
    const asks = pools.map((pool) => {
      pool.isClaiming = true;
      pool.claimMs = nowMs + claimEveryMs;
      const leaseMs = pool.ttlMs + quotaLeaseSlackMs;
      return { pool: pool.name, claim: pool.law.claim(nowMs), leaseMs };
    });
    const { leases, onBug } = this.#parts;
    const hearAll = (answers: readonly QuotaLeaseAnswer[]): void => {
      for (const pool of pools) pool.isClaiming = false;
      pools.forEach((pool, i) => {
        this.#hear(pool, answers[i]);
      });
      this.#noteClaims(answers);
    };
    leases.exchange(asks).then(hearAll).catch(onBug);
  }

  #hear(pool: DrivenPool, answer: QuotaLeaseAnswer | undefined): void {
    const nowMs = this.#parts.clock.monotonicMs();
    if (answer?.kind === "failed") {
      this.#parts.counts.failedClaimCount += 1;
      pool.noteFailed();
    } else if (answer?.kind === "leased") {
      const isFirst = pool.leaseState(nowMs) === "claiming";
      pool.take(answer.lease, nowMs);
      // Holders that waited for the first lease get their shares at once.
      if (isFirst) this.#divide(pool, nowMs);
    }
  }

  #noteClaims(answers: readonly QuotaLeaseAnswer[]): void {
    const failed = answers.find((answer) => answer.kind === "failed");
    const isAnswered = answers.some(({ kind }) => kind === "leased");
    if (failed?.kind === "failed" && !isAnswered && !this.#isUnrenewed) {
      this.#isUnrenewed = true;
      this.#parts.onEvent({ kind: "quotaLeasesUnrenewed", code: failed.code });
    } else if (isAnswered && (this.#isUnrenewed || this.#isLost) && this.#isAllLeased()) {
      this.#isUnrenewed = false;
      this.#isLost = false;
      this.#parts.onEvent({ kind: "quotaLeasesFound" });
    }
  }

  /** Claims are sent in several batches. Those for one part of the store may fail for long. */
  #isAllLeased(): boolean {
    const nowMs = this.#parts.clock.monotonicMs();
    return [...this.#pools.values()].every((pool) => {
      const state = pool.leaseState(nowMs);
      return !pool.isLeased || state === "leased" || state === "claiming";
    });
  }

  /** Charges the usage of each pool or reads its level, in small batches. */
  #charge(pools: readonly DrivenPool[], nowMs: number): void {
    let batch: PoolCharge[] = [];
    let chargeCount = 0;
    for (const pool of pools) {
      pool.chargeMs = nowMs + pool.chargeEveryMs;
      const hits = pool.law.dueHits(nowMs);
      const { reach } = pool;
      if (reach.chargeCount === 0) {
        // Nothing is limited, and nothing is counted.
        pool.law.charged({ hits, levels: [] }, nowMs);
        continue;
      }
      if (hits === 0 && !pool.law.wantsLevel(nowMs)) continue;
      if (chargeCount + reach.chargeCount > batchChargesMax) {
        this.#send(batch);
        batch = [];
        chargeCount = 0;
      }
      batch.push({ pool, reach, hits, charges: reach.charges(hits) });
      chargeCount += reach.chargeCount;
    }
    this.#send(batch);
  }

  #send(batch: readonly PoolCharge[]): void {
    if (batch.length === 0) return;
    const { store, clock, onBug } = this.#parts;
    for (const { pool } of batch) pool.isCharging = true;
    const requests = batch.map(({ charges }): StoreRequest => ({ charges, multiplicity: 1 }));
    const failAll = (thrown: unknown): readonly StoreOutcome[] => {
      const { code } = toServiceError(thrown);
      this.#quietUntilMs = clock.monotonicMs() + storePauseMs;
      return batch.map(() => ({ kind: "failed", code }));
    };
    store
      .take(requests, clock.monotonicMs() + chargeMsMax)
      .catch(failAll)
      .then((outcomes) => this.#settle(batch, outcomes))
      .catch(onBug);
  }

  #settle(batch: readonly PoolCharge[], outcomes: readonly StoreOutcome[]): void {
    const nowMs = this.#parts.clock.monotonicMs();
    batch.forEach(({ pool, reach, hits, charges }, i) => {
      pool.isCharging = false;
      const outcome = outcomes[i];
      if (outcome?.kind !== "decided") {
        this.#parts.counts.missedHits += hits;
        pool.law.missed(hits, nowMs);
        return;
      }
      this.#parts.counts.chargedHits += hits;
      const { results, nowUs } = outcome.result;
      // The levels of previous limits do not apply to the current ones.
      const own = pool.reach === reach ? charges.slice(0, reach.limits.length) : [];
      const levels = own.map((charge, at) => {
        const bucket = results[at]?.bucket;
        return bucket === undefined ? 0 : levelAt(charge, bucket, nowUs) / unitsPerHit;
      });
      pool.law.charged({ hits, levels }, nowMs);
    });
  }
}

/** What is due now is done in this tick, and due again after its interval. */
function nextLookMs({ chargeMs, chargeEveryMs, claimMs }: DrivenPool, nowMs: number): number {
  const nextChargeMs = chargeMs > nowMs ? chargeMs : nowMs + chargeEveryMs;
  const nextClaimMs = claimMs > nowMs ? claimMs : nowMs + lookEveryMs;
  return Math.min(nowMs + lookEveryMs, nextChargeMs, nextClaimMs);
}

interface PoolCharge {
  readonly pool: DrivenPool;
  readonly reach: QuotaReach;
  readonly hits: number;
  readonly charges: readonly Charge[];
}
