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

/** An Envoy has taken in what it was sent, and what it reports has arrived, within this time. */
export const confirmMs = 1_000;

/**
 * Tokens of a bucket: what its rate brings in that many seconds, and a few more. What comes in
 * while a bucket is full is lost: with one token up to half of a small rate, where hits come
 * evenly, and with three a seventh of what just suffices, where they come by chance.
 */
const tokensSeconds = 0.25;
const tokensBase = 4;

/** The least that a bucket works with: where the bank is short of tokens. */
const tokensSecondsMin = 0.1;

/** What may wait unused in buckets: what the lease brings in that many seconds. */
const tokensSecondsMax = 30;

/** What a bank holds: what the lease brings in that many seconds. */
const bankSeconds = 0.5;

/** Where holders get single hits: what it brings between two reports, up to five for each. */
const bankReportSeconds = 5;

/** The rate of a bucket that is for one hit: one an hour; another one by a hair is another one. */
const ticketMicroHz = 278;

/** What a ledger goes by. */
export interface LedgerSettings {
  readonly ttlMs: number;
  /** The smallest of the limits' bursts, in hits. */
  readonly burst: number;
  /** The most that all replicas together ever lease. */
  readonly rateMicroHzMax: number;
}

/** What a holder is to be told. */
export interface Telling {
  readonly assigned:
    | typeof assignedDeny
    | typeof assignedAllow
    | typeof assignedRate
    | typeof assignedTicket;
  /** For a rate: from 1. */
  readonly rateMicroHz?: number;
  /** For a rate and for hits: from 1. */
  readonly tokens?: number;
}

/**
 * What one replica has told its holders of a pool, and what they may still have in force.
 *
 * A smaller rate counts when a report shows that it has arrived, or when the larger one is over; a
 * larger one at once. And a bucket is full when Envoy makes it (the first one, after a blanket
 * rule, after the last one is over): its tokens come on top of rates, so they are paid for. One
 * that follows another that is active for sure takes over what is left of it (measured, Envoy
 * 1.40), and so costs only the tokens that it has more: those in case that Envoy never saw the one
 * before.
 * The bank takes in what the lease has more than the rates:
 *
 * ```
 * bank' = lease - held, within -bankMax and bankMax; a new bucket takes its tokens from it
 * ```
 *
 * So in any interval, whatever Envoys report, they admit at most what the lease has brought in it,
 * the tokens that waited in buckets at its beginning (`tokensMax`) and twice `bankMax`.
 */
export class QuotaLedger {
  /** Holders whose streams are open; whoever keeps them says it. */
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

  /** What may be handed out now; 0 where the lease is over. */
  leaseMicroHz(nowMs: number): number {
    return nowMs < this.#lease.untilMs ? this.#lease.rateMicroHz : 0;
  }

  /** The most that all holders may have in force. */
  get heldMicroHz(): number {
    return this.#heldMicroHz;
  }

  /** Tokens of all buckets that holders were told last. */
  get tokens(): number {
    return this.#tokens;
  }

  /** What all holders were told last. */
  get assignedMicroHz(): number {
    return this.#assignedMicroHz;
  }

  /** Tokens that can be paid for; below 0 where more was given than there was. */
  bankHits(nowMs: number): number {
    this.#accrue(nowMs);
    return this.#bankHits;
  }

  /** The most that the bank holds, and the most that it lends. */
  get bankHitsMax(): number {
    const leaseHz = this.#leaseHz();
    const forEach = Math.min(5 * this.holderCount, leaseHz * bankReportSeconds);
    return Math.max(2, this.#partOfBurst(), leaseHz * bankSeconds, forEach);
  }

  /** The most tokens that may be in all buckets together. */
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
    // Nobody has used any of it: who waits for the first lease need not wait for tokens as well.
    if (isFirst) this.#bankHits += this.#leaseHz() * bankSeconds;
    this.#bankHits = Math.min(this.#bankHits, this.bankHitsMax);
  }

  /** How long what is said now is good for: whole seconds; undefined where the lease ends first. */
  ttlMs(nowMs: number): number | undefined {
    const leftMs = this.#lease.untilMs - nowMs - confirmMs;
    const ttlMs = Math.floor(Math.min(this.#settings.ttlMs, leftMs) / 1_000) * 1_000;
    return ttlMs >= quotaTtlMsMin ? ttlMs : undefined;
  }

  /**
   * Tokens that a holder's bucket of this rate has: as many as can be paid for, from what it needs
   * to what is good. Example: 2 to 5 at 3 hits a second, 11 to 29 at 100.
   */
  tokensOf(holder: QuotaHolder, rateMicroHz: number, nowMs: number): number {
    const hz = rateMicroHz / microHzPerHz;
    const least = 1 + Math.ceil(hz * tokensSecondsMin);
    const good = tokensBase + Math.ceil(hz * tokensSeconds);
    const payable = this.#keptTokens(holder, nowMs) + Math.floor(this.bankHits(nowMs));
    return Math.max(least, Math.min(good, payable));
  }

  /** What the bank pays for a bucket with so many tokens in place of what the holder has. */
  costOf(holder: QuotaHolder, tokens: number, nowMs: number): number {
    return Math.max(0, tokens - this.#keptTokens(holder, nowMs));
  }

  /** Whether a bucket with so many tokens may be made in place of what the holder has. */
  canPay(holder: QuotaHolder, tokens: number, nowMs: number): boolean {
    const others = this.#tokens - (this.#holders.tokens[holder] ?? 0);
    return (
      this.bankHits(nowMs) >= this.costOf(holder, tokens, nowMs) &&
      others + tokens <= this.tokensMax
    );
  }

  /** Whether it may be made where there has to be a smaller one: the bank lends for that. */
  canLend(holder: QuotaHolder, tokens: number, nowMs: number): boolean {
    return this.bankHits(nowMs) - this.costOf(holder, tokens, nowMs) >= -this.bankHitsMax;
  }

  /** Notes what a holder is told from now on; it does not matter whether it is something else. */
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
      // A different bucket is a full one.
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

  /** Its Envoy has no bucket, so that the next one is full, though it is told the same one. */
  payAgain(holder: QuotaHolder, nowMs: number): void {
    const holders = this.#holders;
    const before = this.bankHits(nowMs);
    const paidHits = before - (holders.tokens[holder] ?? 0);
    // Who says so all the time does not keep the others from what is theirs for ever.
    this.#bankHits = Math.max(paidHits, Math.min(before, -this.bankHitsMax));
    holders.unreported[holder] = (holders.unreported[holder] ?? 0) + before - this.#bankHits;
  }

  /** What it was told holds on from now. */
  renew(holder: QuotaHolder, nowMs: number): void {
    const ttlMs = this.ttlMs(nowMs);
    if (ttlMs === undefined) return;
    const untilMs = nowMs + ttlMs + confirmMs;
    const holders = this.#holders;
    holders.untilMs[holder] = Math.max(holders.untilMs[holder] ?? 0, untilMs);
  }

  /** It is known to have nothing larger in force than it was told last. @returns whether it had */
  confirm(holder: QuotaHolder): boolean {
    const holders = this.#holders;
    const more = (holders.held[holder] ?? 0) - (holders.rate[holder] ?? 0);
    if (more <= 0) return false;
    this.#heldMicroHz -= more;
    holders.held[holder] = holders.rate[holder] ?? 0;
    return true;
  }

  /** What is over by time is over. @returns whether it has nothing in force any more */
  expire(holder: QuotaHolder, nowMs: number): boolean {
    const holders = this.#holders;
    if (nowMs >= (holders.heldUntilMs[holder] ?? 0)) this.confirm(holder);
    if (nowMs < (holders.untilMs[holder] ?? 0)) return false;
    this.drop(holder, nowMs);
    return true;
  }

  /** It has nothing in force. */
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

  /** What a holder was told, as it stands on the wire. */
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
   * Tokens of the bucket that another one takes over from: 0 where what is said now could arrive
   * after it is over, as late as messages are taken to be.
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
    // What is held beyond a smaller lease still counts as leased where leases are divided.
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
