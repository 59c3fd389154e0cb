import { assert } from "../base/errors.js";
import { microHzPerHz, type QuotaLimit } from "./quota.js";
import { type CeilingParts, ceilingMicroHz, ceilingMicroHzMax, limitHz } from "./quota-ceiling.js";

interface AccountSettings extends CeilingParts {
  readonly limits: readonly QuotaLimit[];
}

/** What the store answered to a charge. */
export interface QuotaCharged {
  /** Those that `take` gave; 0 where the levels were only asked for. */
  readonly hits: number;
  /** Hits in each limit's bucket after it, in the order of the limits. */
  readonly levels: readonly number[];
}

/** How old levels may be while hits are being used, and while nobody uses any, in milliseconds. */
const levelAgeMs = { busy: 1_000, idle: 5_000 } as const;

/**
 * What one replica has still to charge of what its Envoys admit, and what it knows of the levels.
 *
 * Use is estimated while it goes on, and charged as it goes. A report says what it was: what was
 * used beyond the estimate is due; what was charged beyond it is prepaid, and pays for what is due
 * next, whoever of the pool's holders uses it.
 *
 * Why that gives no more than it should: let U be what was admitted, Q what the store took, V >= 0
 * what was admitted and is not charged yet, A >= 0 what was charged ahead of a report, P >= 0 what
 * is prepaid, F >= 0 what was prepaid and given up; so U = Q + V - A - P - F. In any interval from
 * s to t
 *
 * ```
 * U(s, t) <= Q(s, t) + A(s) + P(s) + V(t)              F grows; A(t), P(t), V(s) >= 0
 *         <= drained(s, t) + level(t) - level(s) + A(s) + P(s) + V(t)
 *         <= rate * (t - s) + level(t) + A(s) + V(t)   as long as P(s) <= level(s)
 * ```
 *
 * which holds for all replicas together when each keeps P within its own part of the level: what it
 * leases, of the most that is ever leased.
 *
 * The store keeps no more than two bursts. Where callers share the limit (`callsShare` above 0),
 * more than that waits here: let go, it would be admitted twice each time that quotas and callers
 * take turns. Where nobody else does, what the assignments allow is bound enough, and it is let go.
 */
export class QuotaAccount {
  #settings: AccountSettings;
  #rateMicroHzMax: number;
  #leaseMicroHz = 0;
  #estimateMicroHz = 0;
  #atMs: number;
  #dueHits = 0;
  #sentHits = 0;
  #prepaidHits = 0;
  #levels: readonly number[] = [];
  #levelsMs: number;
  #isAway = false;

  constructor(settings: AccountSettings, nowMs: number) {
    this.#settings = settings;
    this.#rateMicroHzMax = Math.max(1, ceilingMicroHzMax(settings.limits, settings.ttlMs));
    this.#atMs = nowMs;
    this.#levelsMs = nowMs - levelAgeMs.idle;
  }

  /** The most that is ever leased of all limits. */
  get rateMicroHzMax(): number {
    return this.#rateMicroHzMax;
  }

  /** What is known is kept; levels are not, since they may be those of other limits. */
  configure(settings: AccountSettings, nowMs: number): void {
    this.accrue(nowMs);
    this.#settings = settings;
    this.#rateMicroHzMax = Math.max(1, ceilingMicroHzMax(settings.limits, settings.ttlMs));
    this.#levels = [];
    this.#levelsMs = nowMs - levelAgeMs.idle;
  }

  /** Another lease, or 0 where it is over. */
  lease(rateMicroHz: number, nowMs: number): void {
    this.accrue(nowMs);
    this.#leaseMicroHz = rateMicroHz;
  }

  /** Use goes on so much faster from now on, or slower. */
  estimate(differenceMicroHz: number, nowMs: number): void {
    this.accrue(nowMs);
    this.#estimateMicroHz = Math.max(0, this.#estimateMicroHz + differenceMicroHz);
  }

  /** More was used than was charged. */
  owe(hits: number): void {
    this.#dueHits += hits;
  }

  /** Less was used than was charged. */
  prepay(hits: number, nowMs: number): void {
    this.#prepaidHits = Math.min(this.#prepaidHits + hits, this.#partOfLevel(nowMs));
  }

  /** Charges what was used until now by the estimate; what is prepaid pays first. */
  accrue(nowMs: number): void {
    const seconds = Math.max(0, nowMs - this.#atMs) / 1_000;
    this.#atMs = Math.max(this.#atMs, nowMs);
    this.#dueHits += (this.#estimateMicroHz * seconds) / microHzPerHz;
    if (this.#isAway) this.#drainAway(seconds, nowMs);
    if (this.#prepaidHits === 0) return;
    const paid = Math.min(this.#prepaidHits, this.#partOfLevel(nowMs), this.#dueHits);
    this.#dueHits -= paid;
    this.#prepaidHits = Math.min(this.#prepaidHits - paid, this.#partOfLevel(nowMs));
  }

  /** Whole hits to charge now. They are on their way until `charged` or `missed` says so. */
  take(nowMs: number): number {
    this.accrue(nowMs);
    let hits = Math.floor(this.#dueHits);
    if (this.#settings.callsShare > 0) {
      this.#settings.limits.forEach(({ burst }, i) => {
        if (this.#levels[i] === undefined) return;
        const free = 2 * burst - this.#levelOf(i, nowMs) - this.#sentHits;
        hits = Math.min(hits, Math.max(0, Math.floor(free)));
      });
    }
    this.#dueHits -= hits;
    this.#sentHits += hits;
    return hits;
  }

  /** The store took them. */
  charged({ hits, levels }: QuotaCharged, nowMs: number): void {
    assert(hits <= this.#sentHits, "hits that are on their way");
    this.#sentHits -= hits;
    this.#isAway = false;
    if (levels.length !== this.#settings.limits.length) return;
    this.#levels = levels;
    this.#levelsMs = nowMs;
  }

  /** The store did not take them, as far as anybody knows: they are due again. */
  missed(hits: number, nowMs: number): void {
    assert(hits <= this.#sentHits, "hits that are on their way");
    this.accrue(nowMs);
    this.#sentHits -= hits;
    this.#dueHits += hits;
    this.#isAway = true;
  }

  /** Whether the levels are so old that they should be asked for. */
  wantsLevel(nowMs: number): boolean {
    const ageMs = this.#estimateMicroHz > 0 ? levelAgeMs.busy : levelAgeMs.idle;
    return this.#settings.limits.length > 0 && nowMs - this.#levelsMs >= ageMs;
  }

  /** What may be handed out of the limits over all replicas; the rate where no level is known. */
  ceilingMicroHz(nowMs: number): number {
    let least = Number.MAX_SAFE_INTEGER;
    this.#settings.limits.forEach((limit, i) => {
      const isKnown = this.#levels[i] !== undefined;
      const stored = isKnown ? this.#levelOf(i, nowMs) : limit.burst / 2;
      const levelHits = stored + this.#waitingHits();
      least = Math.min(least, ceilingMicroHz(limit, this.#settings, levelHits));
    });
    return least;
  }

  /** Hits that are used of each limit, as far as is known; undefined before anything is. */
  levels(nowMs: number): readonly number[] | undefined {
    if (this.#levels.length === 0) return undefined;
    return this.#levels.map((_, i) => this.#levelOf(i, nowMs) + this.#waitingHits());
  }

  #waitingHits(): number {
    return Math.max(0, this.#dueHits + this.#sentHits - this.#prepaidHits);
  }

  #levelOf(place: number, nowMs: number): number {
    const limit = this.#settings.limits[place];
    const level = this.#levels[place] ?? 0;
    if (limit === undefined) return level;
    return Math.max(0, level - (limitHz(limit) * Math.max(0, nowMs - this.#levelsMs)) / 1_000);
  }

  #partOfLevel(nowMs: number): number {
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < this.#settings.limits.length; i += 1) {
      least = Math.min(least, this.#levels[i] === undefined ? 0 : this.#levelOf(i, nowMs));
    }
    if (least === Number.POSITIVE_INFINITY) return 0;
    return (least * Math.min(this.#leaseMicroHz, this.#rateMicroHzMax)) / this.#rateMicroHzMax;
  }

  /**
   * While nobody can charge, an empty bucket goes on draining nothing: that is what would have paid
   * for what waits here. So it leaves at this replica's part of the rate.
   */
  #drainAway(seconds: number, nowMs: number): void {
    let leastHz = Number.POSITIVE_INFINITY;
    for (const [i, limit] of this.#settings.limits.entries()) {
      leastHz = Math.min(leastHz, this.#levelOf(i, nowMs) > 0 ? 0 : limitHz(limit));
    }
    if (leastHz === Number.POSITIVE_INFINITY) return;
    const part = Math.min(1, this.#leaseMicroHz / this.#rateMicroHzMax);
    this.#dueHits = Math.max(0, this.#dueHits - leastHz * part * seconds);
  }
}
