import { assert } from "../base/errors.js";
import { microHzPerHz, type QuotaLimit } from "./quota.js";
import { type CeilingParts, ceilingMicroHz, ceilingMicroHzMax, limitHz } from "./quota-ceiling.js";

interface AccountSettings extends CeilingParts {
  readonly limits: readonly QuotaLimit[];
}

/** The store's response to a charge. */
export interface QuotaCharged {
  /** The hits from `take`; 0 if only the levels were read. */
  readonly hits: number;
  /** Hits in each limit's bucket after the charge, in the order of the limits. */
  readonly levels: readonly number[];
}

/** Maximum age of the levels while hits are used and while none are, in milliseconds. */
const levelAgeMs = { busy: 1_000, idle: 5_000 } as const;

/**
 * Tracks what one replica still has to charge for what its Envoys have admitted, and the levels of
 * the limits as far as it knows them.
 *
 * Usage is estimated between reports and charged continuously. A report then gives the real usage.
 * If it exceeds the estimate, the difference is due. If it is below, the difference is prepaid, and
 * offsets what becomes due next, for any holder of the pool.
 *
 * The following shows why this never admits more than allowed. Let U be the admitted hits, Q the
 * hits that the store has charged, V >= 0 those admitted and not yet charged, A >= 0 those charged
 * ahead of a report, P >= 0 those prepaid, and F >= 0 those prepaid and then forfeited. Then U = Q
 * + V - A - P - F. In any interval from s to t:
 *
 * ```
 * U(s, t) <= Q(s, t) + A(s) + P(s) + V(t)              F grows; A(t), P(t), V(s) >= 0
 *         <= drained(s, t) + level(t) - level(s) + A(s) + P(s) + V(t)
 *         <= rate * (t - s) + level(t) + A(s) + V(t)   as long as P(s) <= level(s)
 * ```
 *
 * This holds for all replicas together if each one keeps P within its own part of the level: its
 * lease as a fraction of the maximum that is ever leased.
 *
 * The store keeps at most two bursts. If callers share the limit (`callsShare` above 0), hits
 * beyond that wait here: if they were dropped, they would be admitted twice each time that quotas
 * and callers alternate. If no callers use the limit, the assignments bound it sufficiently, and
 * the excess is dropped.
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

  /** The most that is ever leased, over all limits. */
  get rateMicroHzMax(): number {
    return this.#rateMicroHzMax;
  }

  /** Keeps all state except the levels, which may belong to other limits. */
  configure(settings: AccountSettings, nowMs: number): void {
    this.accrue(nowMs);
    this.#settings = settings;
    this.#rateMicroHzMax = Math.max(1, ceilingMicroHzMax(settings.limits, settings.ttlMs));
    this.#levels = [];
    this.#levelsMs = nowMs - levelAgeMs.idle;
  }

  /** Applies a new lease; 0 if the lease has ended. */
  lease(rateMicroHz: number, nowMs: number): void {
    this.accrue(nowMs);
    this.#leaseMicroHz = rateMicroHz;
  }

  /** Changes the estimated rate of usage by a difference. */
  estimate(differenceMicroHz: number, nowMs: number): void {
    this.accrue(nowMs);
    this.#estimateMicroHz = Math.max(0, this.#estimateMicroHz + differenceMicroHz);
  }

  /** Adds hits that were used but not charged. */
  owe(hits: number): void {
    this.#dueHits += hits;
  }

  /** Adds hits that were charged but not used. */
  prepay(hits: number, nowMs: number): void {
    this.#prepaidHits = Math.min(this.#prepaidHits + hits, this.#partOfLevel(nowMs));
  }

  /** Charges the estimated usage up to now, first from what is prepaid. */
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

  /**
   * Returns the whole hits to charge now. They are in flight until `charged` or `missed` is called.
   */
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

  /** The store has charged the hits. */
  charged({ hits, levels }: QuotaCharged, nowMs: number): void {
    assert(hits <= this.#sentHits, "hits that are on their way");
    this.#sentHits -= hits;
    this.#isAway = false;
    if (levels.length !== this.#settings.limits.length) return;
    this.#levels = levels;
    this.#levelsMs = nowMs;
  }

  /** The store has not charged the hits, as far as is known. They are due again. */
  missed(hits: number, nowMs: number): void {
    assert(hits <= this.#sentHits, "hits that are on their way");
    this.accrue(nowMs);
    this.#sentHits -= hits;
    this.#dueHits += hits;
    this.#isAway = true;
  }

  /** Whether the levels are so old that they should be read again. */
  wantsLevel(nowMs: number): boolean {
    const ageMs = this.#estimateMicroHz > 0 ? levelAgeMs.busy : levelAgeMs.idle;
    return this.#settings.limits.length > 0 && nowMs - this.#levelsMs >= ageMs;
  }

  /** What may be assigned over all replicas; the rate of the limits if no level is known. */
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

  /** The used hits of each limit, as far as is known. Undefined before the first response. */
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
   * While nothing can be charged, an empty bucket cannot drain what waits here. So the waiting hits
   * drain here, at this replica's share of the rate.
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
