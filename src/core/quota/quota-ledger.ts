import {
  microHzPerHz,
  type QuotaAssignment,
  type QuotaHolder,
  type QuotaLease,
  quotaTtlMsMin,
} from "./quota.js";
import {
  assignedAllow,
  assignedDeny,
  assignedNothing,
  assignedRate,
  assignedTicket,
  type QuotaHolders,
} from "./quota-holders.js";

/** Time within which an Envoy has applied an assignment and its report has arrived. */
export const confirmMs = 1_000;

/**
 * Tokens of a bucket: what its rate yields in this many seconds, and a few more. Whatever arrives
 * while a bucket is full is lost. With one token, that is up to half of a small rate if hits arrive
 * evenly; with three, it is a seventh of a rate that just suffices if they arrive at random.
 */
const tokensSeconds = 0.25;
const tokensBase = 4;

/** The minimum for a bucket to work. Used if the bank is short of tokens. */
const tokensSecondsMin = 0.1;

/** Maximum number of unused tokens in buckets: what the lease yields in this many seconds. */
const tokensSecondsMax = 30;

/** The capacity of the bank: what the lease yields in this many seconds. */
const bankSeconds = 0.5;

/** Its capacity if holders get single hits: the yield between two reports, up to five hits each. */
const bankReportSeconds = 5;

/**
 * The rate of a bucket for a single hit: one per hour. A slightly different rate makes a new
 * bucket.
 */
const ticketMicroHz = 278;

/** The inputs of a ledger. */
export interface LedgerSettings {
  readonly ttlMs: number;
  /** The smallest burst of the limits, in hits. */
  readonly burst: number;
  /** The most that all replicas together ever lease. */
  readonly rateMicroHzMax: number;
}

/** The next assignment of a holder. */
export interface Telling {
  readonly assigned:
    | typeof assignedDeny
    | typeof assignedAllow
    | typeof assignedRate
    | typeof assignedTicket;
  /** For a rate: at least 1. */
  readonly rateMicroHz?: number;
  /** For a rate and for hits: at least 1. */
  readonly tokens?: number;
}

/**
 * Tracks what one replica has assigned to the holders of a pool, and what may still be active.
 *
 * A lower rate counts once a report shows that it has arrived, or once the higher one has ended. A
 * higher rate counts at once. In addition, a bucket is full when Envoy creates it: the first one,
 * one after a blanket rule, and one after the last has ended. Its tokens come on top of the rates
 * and are paid for. A bucket that replaces one that is certainly active takes over the remaining
 * tokens (measured, Envoy 1.40). It costs only the additional tokens, in case Envoy never received
 * the previous one. The bank accumulates the part of the lease that exceeds the rates:
 *
 * ```
 * bank' = lease - held, within -bankMax and bankMax; a new bucket takes its tokens from it
 * ```
 *
 * So whatever Envoys report, in any interval they admit at most what the lease has yielded, the
 * tokens that were in buckets at its start (`tokensMax`), and twice `bankMax`.
 */
export class QuotaLedger {
  /** The number of holders with an open stream. The owner of the streams sets it. */
  holderCount = 0;
  readonly #holders: QuotaHolders;
  #settings: LedgerSettings;
  #lease: QuotaLease = { rateMicroHz: 0, untilMs: 0, elsewhere: [] };
  #heldMicroHz = 0;
  #assignedMicroHz = 0;
  #tokens = 0;
  #bankHits = 0;
  #atMs: number;

  constructor(holders: QuotaHolders, settings: LedgerSettings, nowMs: number) {
    this.#holders = holders;
    this.#settings = settings;
    this.#atMs = nowMs;
  }

  /** What may be assigned now; 0 if the lease has ended. */
  leaseMicroHz(nowMs: number): number {
    return nowMs < this.#lease.untilMs ? this.#lease.rateMicroHz : 0;
  }

  /** The most that all holders may have active. */
  get heldMicroHz(): number {
    return this.#heldMicroHz;
  }

  /** The tokens of all assigned buckets. */
  get tokens(): number {
    return this.#tokens;
  }

  /** The sum of all assigned rates. */
  get assignedMicroHz(): number {
    return this.#assignedMicroHz;
  }

  /** Tokens that can be spent; below 0 if more were spent than available. */
  bankHits(nowMs: number): number {
    this.#accrue(nowMs);
    return this.#bankHits;
  }

  /** The capacity of the bank, and the most that it lends. */
  get bankHitsMax(): number {
    const leaseHz = this.#leaseHz();
    const forEach = Math.min(5 * this.holderCount, leaseHz * bankReportSeconds);
    return Math.max(2, this.#partOfBurst(), leaseHz * bankSeconds, forEach);
  }

  /** Maximum number of tokens in all buckets together. */
  get tokensMax(): number {
    return Math.max(2, this.#partOfBurst(), this.#leaseHz() * tokensSecondsMax);
  }

  configure(settings: LedgerSettings, nowMs: number): void {
    this.#accrue(nowMs);
    this.#settings = settings;
  }

  lease(lease: QuotaLease, nowMs: number): void {
    this.#accrue(nowMs);
    const isFirst = this.#lease.untilMs === 0;
    this.#lease = lease;
    // The first lease is still unused, so holders need not wait for tokens as well.
    if (isFirst) this.#bankHits += this.#leaseHz() * bankSeconds;
    this.#bankHits = Math.min(this.#bankHits, this.bankHitsMax);
  }

  /**
   * The ttl of an assignment sent now, in whole seconds. Undefined if the lease ends before that.
   */
  ttlMs(nowMs: number): number | undefined {
    const leftMs = this.#lease.untilMs - nowMs - confirmMs;
    const ttlMs = Math.floor(Math.min(this.#settings.ttlMs, leftMs) / 1_000) * 1_000;
    return ttlMs >= quotaTtlMsMin ? ttlMs : undefined;
  }

  /**
   * The tokens of a holder's bucket of this rate: as many as can be paid for, between the minimum
   * and the ideal. Example: 2 to 5 at 3 hits per second, 11 to 29 at 100.
   */
  tokensOf(holder: QuotaHolder, rateMicroHz: number, nowMs: number): number {
    const hz = rateMicroHz / microHzPerHz;
    const least = 1 + Math.ceil(hz * tokensSecondsMin);
    const good = tokensBase + Math.ceil(hz * tokensSeconds);
    const payable = this.#keptTokens(holder, nowMs) + Math.floor(this.bankHits(nowMs));
    return Math.max(least, Math.min(good, payable));
  }

  /** The cost of replacing the holder's bucket with one that has this many tokens. */
  costOf(holder: QuotaHolder, tokens: number, nowMs: number): number {
    return Math.max(0, tokens - this.#keptTokens(holder, nowMs));
  }

  /** Whether the bank can pay for that replacement. */
  canPay(holder: QuotaHolder, tokens: number, nowMs: number): boolean {
    const others = this.#tokens - (this.#holders.tokens[holder] ?? 0);
    return (
      this.bankHits(nowMs) >= this.costOf(holder, tokens, nowMs) &&
      others + tokens <= this.tokensMax
    );
  }

  /** Whether the bank may lend for that replacement, if the rate must be reduced. */
  canLend(holder: QuotaHolder, tokens: number, nowMs: number): boolean {
    return this.bankHits(nowMs) - this.costOf(holder, tokens, nowMs) >= -this.bankHitsMax;
  }

  /** Records an assignment, whether or not it differs from the previous one. */
  tell(
    holder: QuotaHolder,
    { assigned, rateMicroHz = 0, tokens: given = 1 }: Telling,
    nowMs: number,
  ): void {
    this.#accrue(nowMs);
    const holders = this.#holders;
    const before = holders.rate[holder] ?? 0;
    let rate = assigned === assignedRate ? rateMicroHz : 0;
    const tokens = assigned === assignedRate || assigned === assignedTicket ? given : 0;
    if (assigned === assignedTicket) {
      // A different bucket starts full.
      rate = before === ticketMicroHz ? ticketMicroHz + 1 : ticketMicroHz;
    }
    const isSame = holders.assigned[holder] === assigned && before === rate;
    if (!isSame) {
      const held = Math.max(holders.held[holder] ?? 0, rate);
      if (held > rate && before > rate) holders.heldUntilMs[holder] = holders.untilMs[holder] ?? 0;
      this.#heldMicroHz += held - (holders.held[holder] ?? 0);
      this.#assignedMicroHz += rate - before;
      this.#tokens += tokens - (holders.tokens[holder] ?? 0);
      const cost = this.costOf(holder, tokens, nowMs);
      this.#bankHits -= cost;
      holders.held[holder] = held;
      holders.top[holder] = Math.max(holders.top[holder] ?? 0, rate);
      holders.unreported[holder] = (holders.unreported[holder] ?? 0) + cost;
      holders.rate[holder] = rate;
      holders.tokens[holder] = tokens;
      holders.assigned[holder] = assigned;
      holders.isSpent[holder] = 0;
      holders.changedMs[holder] = nowMs;
    }
    this.renew(holder, nowMs);
  }

  /** Pays for a full bucket again because the Envoy has lost the one with this assignment. */
  payAgain(holder: QuotaHolder, nowMs: number): void {
    const holders = this.#holders;
    const before = this.bankHits(nowMs);
    const paidHits = before - (holders.tokens[holder] ?? 0);
    // A holder that repeats this must not deprive the others forever.
    this.#bankHits = Math.max(paidHits, Math.min(before, -this.bankHitsMax));
    holders.unreported[holder] = (holders.unreported[holder] ?? 0) + before - this.#bankHits;
  }

  /** Extends the current assignment from now. */
  renew(holder: QuotaHolder, nowMs: number): void {
    const ttlMs = this.ttlMs(nowMs);
    if (ttlMs === undefined) return;
    const untilMs = nowMs + ttlMs + confirmMs;
    const holders = this.#holders;
    holders.untilMs[holder] = Math.max(holders.untilMs[holder] ?? 0, untilMs);
  }

  /**
   * Records that nothing higher than the last assignment is active. @returns whether anything was
   */
  confirm(holder: QuotaHolder): boolean {
    const holders = this.#holders;
    const more = (holders.held[holder] ?? 0) - (holders.rate[holder] ?? 0);
    if (more <= 0) return false;
    this.#heldMicroHz -= more;
    holders.held[holder] = holders.rate[holder] ?? 0;
    return true;
  }

  /** Ends whatever has expired. @returns whether the holder has nothing active any more */
  expire(holder: QuotaHolder, nowMs: number): boolean {
    const holders = this.#holders;
    if (nowMs >= (holders.heldUntilMs[holder] ?? 0)) this.confirm(holder);
    if (nowMs < (holders.untilMs[holder] ?? 0)) return false;
    this.drop(holder, nowMs);
    return true;
  }

  /** Ends everything that the holder has active. */
  drop(holder: QuotaHolder, nowMs: number): void {
    this.#accrue(nowMs);
    const holders = this.#holders;
    this.#heldMicroHz -= holders.held[holder] ?? 0;
    this.#assignedMicroHz -= holders.rate[holder] ?? 0;
    this.#tokens -= holders.tokens[holder] ?? 0;
    holders.held[holder] = 0;
    holders.rate[holder] = 0;
    holders.tokens[holder] = 0;
    holders.assigned[holder] = assignedNothing;
  }

  /** The current assignment of a holder, as it is sent. */
  assignment(holder: QuotaHolder, ttlMs: number): QuotaAssignment | undefined {
    const { assigned, rate, tokens } = this.#holders;
    switch (assigned[holder]) {
      case assignedDeny:
        return { kind: "blanket", rule: "deny", ttlMs };
      case assignedAllow:
        return { kind: "blanket", rule: "allow", ttlMs };
      case assignedRate:
      case assignedTicket:
        return {
          kind: "bucket",
          rateMicroHz: rate[holder] ?? 1,
          tokensMax: tokens[holder] ?? 1,
          ttlMs,
        };
      default:
        return undefined;
    }
  }

  /**
   * Tokens in the bucket that a new one takes over. 0 if the assignment could arrive after that
   * bucket has ended, assuming the longest message delay.
   */
  #keptTokens(holder: QuotaHolder, nowMs: number): number {
    const { tokens, untilMs } = this.#holders;
    const isKept = nowMs + 2 * confirmMs <= (untilMs[holder] ?? 0);
    return isKept ? (tokens[holder] ?? 0) : 0;
  }

  #accrue(nowMs: number): void {
    const endMs = Math.min(nowMs, this.#lease.untilMs);
    const seconds = Math.max(0, endMs - this.#atMs) / 1_000;
    this.#atMs = Math.max(this.#atMs, nowMs);
    // Rates held beyond a reduced lease still count as leased where leases are divided.
    const inflow = Math.max(0, this.#lease.rateMicroHz - this.#heldMicroHz) / microHzPerHz;
    this.#bankHits = Math.min(this.bankHitsMax, this.#bankHits + inflow * seconds);
  }

  #leaseHz(): number {
    return this.#lease.rateMicroHz / microHzPerHz;
  }

  #partOfBurst(): number {
    const { burst, rateMicroHzMax } = this.#settings;
    const part = Math.min(1, this.#lease.rateMicroHz / Math.max(1, rateMicroHzMax));
    return (part * burst) / 2;
  }
}
