import { assert } from "../base/errors.js";
import {
  claimedWeightUnit,
  type QuotaAssignment,
  type QuotaChange,
  type QuotaClaim,
  type QuotaCrowd,
  type QuotaHolder,
  type QuotaHolderState,
  type QuotaLease,
  type QuotaPoolSettings,
  type QuotaUsage,
  quotaReportMs,
  unlimitedQuotaTtlMs,
} from "./quota.js";
import { QuotaAccount, type QuotaCharged } from "./quota-account.js";
import { ceilingMicroHzMax } from "./quota-ceiling.js";
import {
  assignedAllow,
  assignedDeny,
  assignedNothing,
  assignedRate,
  assignedTicket,
  type QuotaHolders,
} from "./quota-holders.js";
import { confirmMs, type LedgerSettings, QuotaLedger } from "./quota-ledger.js";
import { isOpenPaid, QuotaMeter, type UsageVerdict } from "./quota-meter.js";
import { countMember, createParty, partsWeight, QuotaParties } from "./quota-party.js";
import {
  fitMicroHz,
  type NewcomerTerms,
  QuotaRound,
  slowMicroHz,
  type WantTerms,
  wantedMicroHz,
} from "./quota-round.js";

interface QuotaPoolParts {
  readonly settings: QuotaPoolSettings;
  /** The holders of the whole process. */
  readonly holders: QuotaHolders;
  readonly nowMs: number;
}

interface Joining {
  readonly weight: number;
  readonly identity: string;
  readonly bytes?: number;
  readonly poolBytes?: number;
}

/** The rates of a pool, for display. */
interface QuotaPoolRates {
  readonly heldMicroHz: number;
  readonly leaseMicroHz: number;
  readonly bankHits: number;
}

/** Minimum time between two rounds of a pool, in milliseconds; also the tick of its driver. */
const quotaRoundMs = 250;

/** Time between two rounds of an inactive pool, in which assignments expire. */
const quietRoundMs = 1_000;

/** A holder that was not seen in use for this long is forgotten, in milliseconds. */
export const quotaIdleMs = 60_000;

/** A holder that has not reported for this long is assumed to use all that it has. */
const silentMs = 1.4 * quotaReportMs;

/** A holder whose demand for its weight exceeds the mean by this factor is claimed separately. */
const largeRatio = 1.5;

/**
 * One pool of one replica: its holders, their usage, and their shares. The owner passes in reports
 * and streams, charges its hits to the store, exchanges its lease with the other replicas, and
 * starts a round every `quotaRoundMs` if anything has changed.
 *
 * `QuotaLedger` tracks what is and may still be assigned, `QuotaAccount` what was used, and
 * `QuotaRound` divides the lease. docs/internals/quotas.md explains what all of this guarantees.
 */
export class QuotaPool {
  readonly #holders: QuotaHolders;
  readonly #ledger: QuotaLedger;
  readonly #account: QuotaAccount;
  readonly #meter: QuotaMeter;
  #members: QuotaHolder[] = [];
  /** Holders with a closed stream. They count until their assignments have ended. */
  readonly #left: QuotaHolder[] = [];
  readonly #parties = new QuotaParties();
  #settings: QuotaPoolSettings;
  /** The combined weight of all members. */
  #partsWeight = 0;
  /** The combined demand in the last round. */
  #askedMicroHz = 0;
  /** Whether any party has Envoys at other replicas. */
  #isElsewhere = false;
  #isDirty = false;
  #roundMs: number;
  #roundCount = 0;

  constructor({ settings, holders, nowMs }: QuotaPoolParts) {
    this.#settings = settings;
    this.#holders = holders;
    this.#ledger = new QuotaLedger(holders, ledgerSettings(settings), nowMs);
    this.#account = new QuotaAccount(settings, nowMs);
    this.#meter = new QuotaMeter(holders, this.#account);
    this.#roundMs = nowMs - quietRoundMs;
  }

  /** The number of holders with an open stream. */
  get holderCount(): number {
    return this.#members.length;
  }

  /** The number of holders that count, including those with a closed stream. */
  get countedCount(): number {
    return this.#members.length + this.#left.length;
  }

  /** The combined demand of all holders. */
  get demandMicroHz(): number {
    const { demand } = this.#holders;
    let sum = 0;
    for (const holder of this.#members) sum += Math.floor(demand[holder] ?? 0);
    for (const holder of this.#left) sum += Math.floor(demand[holder] ?? 0);
    return sum;
  }

  get settings(): QuotaPoolSettings {
    return this.#settings;
  }

  /** The rate that may be active, the rate that may be assigned, and the tokens for new buckets. */
  rates(nowMs: number): QuotaPoolRates {
    const ledger = this.#ledger;
    const leaseMicroHz = ledger.leaseMicroHz(nowMs);
    return { heldMicroHz: ledger.heldMicroHz, leaseMicroHz, bankHits: ledger.bankHits(nowMs) };
  }

  /** The used hits of each limit, as far as is known. Undefined before the first response. */
  levels(nowMs: number): readonly number[] | undefined {
    return this.#account.levels(nowMs);
  }

  /** Applies changes of the policy, an override or a freeze. A round then updates all holders. */
  configure(settings: QuotaPoolSettings, nowMs: number): void {
    this.#settings = settings;
    this.#ledger.configure(ledgerSettings(settings), nowMs);
    this.#account.configure(settings, nowMs);
    this.#isDirty = true;
    this.#roundMs = nowMs - quietRoundMs;
  }

  /**
   * Adds a bucket that is new on its stream. Returns undefined if a bound is reached.
   *
   * @param joining `identity` owns the stream, as in `QuotaCrowd`; `bytes` is the memory used for
   *   it, and `poolBytes` that used for its pool, which counts for one of the pool's holders
   */
  join(
    { weight, identity, bytes = 0, poolBytes = 0 }: Joining,
    nowMs: number,
  ): QuotaHolder | undefined {
    assert(weight > 0, "a weight above 0");
    const party = this.#parties.get(identity) ?? createParty(identity, nowMs);
    const sharedBytes = this.countedCount === 0 ? poolBytes : 0;
    const holder = this.#holders.add(party, bytes + sharedBytes);
    if (holder === undefined) return undefined;
    this.#holders.share(holder, sharedBytes);
    this.#parties.add(party);
    this.#holders.reset(holder, weight, nowMs);
    this.#enter(holder);
    return holder;
  }

  /** The holder's stream was closed. @returns until when the holder counts and may `rejoin` */
  leave(holder: QuotaHolder, nowMs: number): number {
    const holders = this.#holders;
    this.#meter.estimate(holder, 0, nowMs);
    this.#exit(holder);
    holders.isLeft[holder] = 1;
    this.#left.push(holder);
    return Math.max(nowMs, holders.untilMs[holder] ?? 0, holders.heldUntilMs[holder] ?? 0);
  }

  /** The same Envoy has opened another stream before the holder was forgotten. */
  rejoin(holder: QuotaHolder, nowMs: number): void {
    const holders = this.#holders;
    const place = this.#left.indexOf(holder);
    assert(place >= 0, "a holder that has left");
    this.#left.splice(place, 1);
    holders.isLeft[holder] = 0;
    holders.reportedMs[holder] = nowMs;
    holders.clockMs[holder] = nowMs;
    holders.changedMs[holder] = nowMs;
    holders.aheadHits[holder] = 0;
    // Another replica may have assigned something meanwhile, until the next assignment arrives.
    holders.wasOpen[holder] = 2;
    this.#enter(holder);
  }

  /** Reads a report. Impossible values are reduced to the maximum possible, and credit nothing. */
  report(holder: QuotaHolder, usage: QuotaUsage, nowMs: number): UsageVerdict {
    const part = partsWeight(this.#holders.party[holder]) / this.#partsWeight;
    const openMicroHz = this.#account.rateMicroHzMax * Math.min(1, part);
    // Envoy reports zero elapsed time only for a new bucket: after a restart it has none.
    if (usage.elapsedMs === 0) this.#ledger.payAgain(holder, nowMs);
    const { verdict, isTaken, isOther } = this.#meter.read(holder, usage, { openMicroHz, nowMs });
    const isFreed = isTaken && this.#ledger.confirm(holder);
    if (isOther || isFreed) this.#isDirty = true;
    return verdict;
  }

  /** The assignment to send in response to a report. Undefined if nothing may be assigned. */
  answer(holder: QuotaHolder, nowMs: number): QuotaAssignment | undefined {
    const holders = this.#holders;
    const plain = this.#plain();
    if (plain !== undefined) {
      if (holders.assigned[holder] !== plain) this.#ledger.tell(holder, { assigned: plain }, nowMs);
      holders.untilMs[holder] = nowMs + unlimitedQuotaTtlMs + confirmMs;
      return this.#ledger.assignment(holder, unlimitedQuotaTtlMs);
    }
    const ttlMs = this.#ledger.ttlMs(nowMs);
    if (ttlMs === undefined) return undefined;
    const assigned = holders.assigned[holder];
    if (assigned === assignedNothing || assigned === assignedAllow) this.#welcome(holder, nowMs);
    else if (assigned === assignedTicket && holders.isSpent[holder] === 1) {
      // The next round may assign another one. A bucket is only full after a blanket rule.
      this.#ledger.tell(holder, { assigned: assignedDeny }, nowMs);
      this.#isDirty = true;
    } else this.#ledger.renew(holder, nowMs);
    return this.#ledger.assignment(holder, ttlMs);
  }

  /** Whether a round would change anything or is due. */
  isDue(nowMs: number): boolean {
    const sinceMs = nowMs - this.#roundMs;
    return sinceMs >= (this.#isDirty ? this.#roundEveryMs : quietRoundMs) && this.countedCount > 0;
  }

  /** Runs a round. @returns the changes to send */
  rebalance(nowMs: number): readonly QuotaChange[] {
    this.#roundMs = nowMs;
    this.#roundCount += 1;
    this.#isDirty = false;
    const abandoned = this.#look(nowMs);
    const plain = this.#plain();
    if (plain !== undefined) return [...abandoned, ...this.#tellAll(plain, nowMs)];
    if (this.#members.length === 0 || this.#ledger.ttlMs(nowMs) === undefined) return abandoned;
    this.#askedMicroHz = this.demandMicroHz;
    const round = new QuotaRound({
      holders: this.#holders,
      ledger: this.#ledger,
      members: this.#members,
      start: (this.#roundCount * 7_919) % this.#members.length,
      wants: this.#wantTerms(nowMs),
      newcomers: this.#newcomerTerms(nowMs),
      nowMs,
    });
    const changes = round.run();
    for (const { holder } of changes) this.#meter.expect(holder, nowMs);
    this.#isDirty = round.isWaiting;
    return abandoned.length === 0 ? changes : [...abandoned, ...changes];
  }

  /**
   * Returns the whole hits to charge to all limits. Unless it is 0, `charged` or `missed` must
   * follow.
   */
  dueHits(nowMs: number): number {
    return this.#account.take(nowMs);
  }

  /** The store has charged the hits or returned the levels. */
  charged(charged: QuotaCharged, nowMs: number): void {
    this.#account.charged(charged, nowMs);
  }

  /** The store has not charged the hits, as far as is known. */
  missed(hits: number, nowMs: number): void {
    this.#account.missed(hits, nowMs);
  }

  /** Whether the levels should be read although there is nothing to charge. */
  wantsLevel(nowMs: number): boolean {
    return this.#plain() === undefined && this.#account.wantsLevel(nowMs);
  }

  /**
   * The claim of this replica. It separates the demand and weight of holders with a small demand
   * from those with a large demand. Otherwise, the weight of many small holders would increase the
   * share of a few large ones. An identity has the weight of the Envoys that it has at this
   * replica.
   */
  claim(nowMs: number): QuotaClaim {
    const holders = this.#holders;
    const wants = this.#wantTerms(nowMs);
    const ceilingMicroHz = this.#account.ceilingMicroHz(nowMs);
    let sum = 0;
    for (const holder of this.#members) sum += wantedMicroHz(holders, holder, wants);
    const middle = (largeRatio * sum) / Math.max(1e-9, this.#partsWeight);
    let hungry = 0;
    let hungryWeight = 0;
    for (const holder of this.#members) {
      const wanted = wantedMicroHz(holders, holder, wants);
      const weight = holders.partWeight(holder);
      if (wanted <= middle * weight) continue;
      hungry += wanted;
      hungryWeight += weight;
    }
    const met = sum - hungry;
    // A replica with any holder reserves room for the next ones.
    const least = this.#members.length === 0 ? 0 : ceilingMicroHz / 100;
    return {
      metMicroHz: Math.floor(Math.max(met, hungry > 0 ? 0 : least)),
      hungryMicroHz: Math.floor(hungry),
      hungryWeight: Math.ceil(hungryWeight * claimedWeightUnit),
      weight: Math.ceil(this.#partsWeight * claimedWeightUnit),
      heldMicroHz: Math.max(this.#ledger.heldMicroHz, this.#ledger.leaseMicroHz(nowMs)),
      ceilingMicroHz,
      crowds: this.#parties.crowds(),
    };
  }

  /** Applies a new lease. */
  lease(lease: QuotaLease, nowMs: number): void {
    const before = this.#ledger.leaseMicroHz(nowMs);
    this.#ledger.lease(lease, nowMs);
    this.#meetElsewhere(lease.elsewhere);
    this.#account.lease(lease.rateMicroHz, nowMs);
    const isNear = Math.abs(lease.rateMicroHz - before) <= 0.02 * before;
    if (!isNear || this.#ledger.assignedMicroHz > lease.rateMicroHz) this.#isDirty = true;
  }

  /** All holders, for display. */
  states(nowMs: number): readonly QuotaHolderState[] {
    const { demand, held, isLeft, reportedMs } = this.#holders;
    const ttlMs = this.#ledger.ttlMs(nowMs) ?? 0;
    return [...this.#members, ...this.#left].map((holder) => ({
      holder,
      weight: this.#holders.weight[holder] ?? 0,
      demandMicroHz: Math.floor(demand[holder] ?? 0),
      assignment: this.#ledger.assignment(holder, ttlMs),
      heldMicroHz: held[holder] ?? 0,
      reportedMs: reportedMs[holder] ?? 0,
      isLeft: isLeft[holder] === 1,
    }));
  }

  #meetElsewhere(crowds: readonly QuotaCrowd[]): void {
    const isElsewhere = crowds.length > 0 && crowds.some(({ count }) => count > 0);
    if (!isElsewhere && !this.#isElsewhere) return;
    this.#isElsewhere = isElsewhere;
    const counts = new Map(crowds.map(({ identity, count }) => [identity, count]));
    let weight = 0;
    this.#parties.each((party) => {
      const count = counts.get(party.identity) ?? 0;
      if (party.elsewhere !== count) this.#isDirty = true;
      party.elsewhere = count;
      weight += partsWeight(party);
    });
    this.#partsWeight = weight;
  }

  /**
   * Minimum time between two rounds. A round visits each holder, and the number of reports grows
   * with the holders. A millisecond per holder keeps the cost of rounds per report constant.
   */
  get #roundEveryMs(): number {
    return Math.min(quietRoundMs, Math.max(quotaRoundMs, this.#members.length));
  }

  #plain(): typeof assignedAllow | typeof assignedDeny | undefined {
    switch (this.#settings.mode) {
      case "denied":
        return assignedDeny;
      case "counted":
      case "unlimited":
        return assignedAllow;
      default:
        return undefined;
    }
  }

  #wantTerms(nowMs: number): WantTerms {
    const { rateMicroHzMax: demandMicroHzMax } = this.#account;
    const parts = Math.max(1e-9, this.#partsWeight);
    return { demandMicroHzMax, evenMicroHz: this.#account.ceilingMicroHz(nowMs) / parts };
  }

  #newcomerTerms(nowMs: number): NewcomerTerms {
    const hasRoom = this.#askedMicroHz < this.#account.ceilingMicroHz(nowMs);
    return { evenMicroHz: this.#wantTerms(nowMs).evenMicroHz, hasRoom };
  }

  /**
   * Assigns the first share of a new holder without a round: an even one, as far as there is room.
   */
  #welcome(holder: QuotaHolder, nowMs: number): void {
    const ledger = this.#ledger;
    const leaseMicroHz = ledger.leaseMicroHz(nowMs);
    const room = leaseMicroHz - ledger.heldMicroHz;
    const even = (leaseMicroHz * this.#holders.partWeight(holder)) / this.#partsWeight;
    const rateMicroHz = Math.floor(Math.min(room, even));
    const tokens = ledger.tokensOf(holder, rateMicroHz, nowMs);
    this.#isDirty = true;
    const newcomers = this.#newcomerTerms(nowMs);
    const fit = fitMicroHz(this.#holders, holder, { newcomers, nowMs });
    if (fit > 0 && (rateMicroHz < fit || !ledger.canPay(holder, tokens, nowMs))) return;
    if (rateMicroHz >= slowMicroHz && ledger.canPay(holder, tokens, nowMs)) {
      ledger.tell(holder, { assigned: assignedRate, rateMicroHz, tokens }, nowMs);
    } else {
      const assigned = ledger.canPay(holder, 1, nowMs) ? assignedTicket : assignedDeny;
      ledger.tell(holder, { assigned }, nowMs);
    }
  }

  /** Applies the effects of time. */
  #look(nowMs: number): readonly QuotaChange[] {
    const { reportedMs, rate, assigned, usedMs, wasOpen } = this.#holders;
    const idle: QuotaHolder[] = [];
    for (const holder of this.#members) {
      // Until its next assignment, it applies what the quota defines for expired assignments.
      if (this.#ledger.expire(holder, nowMs)) wasOpen[holder] = 1;
      const isSilent = nowMs - (reportedMs[holder] ?? 0) >= silentMs;
      if (isSilent && assigned[holder] === assignedRate) {
        this.#meter.estimate(holder, rate[holder] ?? 0, nowMs);
      } else if (isSilent) this.#meter.estimate(holder, 0, nowMs);
      if (nowMs - (usedMs[holder] ?? 0) >= quotaIdleMs) idle.push(holder);
    }
    for (let i = this.#left.length - 1; i >= 0; i -= 1) {
      const holder = this.#left[i];
      if (holder === undefined || !this.#ledger.expire(holder, nowMs)) continue;
      this.#left.splice(i, 1);
      const heir = this.#members[0] ?? this.#left[0];
      if (heir !== undefined) this.#holders.bequeath(holder, heir);
      this.#holders.remove(holder);
    }
    this.#parties.each((party) => {
      if (party.holderCount === 0 && isOpenPaid(party, nowMs)) this.#parties.delete(party);
    });
    return idle.map((holder): QuotaChange => {
      this.leave(holder, nowMs);
      return { kind: "abandon", holder };
    });
  }

  #tellAll(
    assigned: typeof assignedAllow | typeof assignedDeny,
    nowMs: number,
  ): readonly QuotaChange[] {
    const changes: QuotaChange[] = [];
    for (const holder of this.#members) {
      if (this.#holders.assigned[holder] === assigned) continue;
      const assignment = this.answer(holder, nowMs);
      if (assignment !== undefined) changes.push({ kind: "assign", holder, assignment });
    }
    return changes;
  }

  #enter(holder: QuotaHolder): void {
    this.#holders.place[holder] = this.#members.length;
    // The first `push` allocates room for 17 elements: many pools have one holder.
    if (this.#members.length === 0) this.#members = [holder];
    else this.#members.push(holder);
    this.#ledger.holderCount = this.#members.length;
    this.#isDirty = true;
    this.#countMember(holder, 1);
  }

  #exit(holder: QuotaHolder): void {
    const { place } = this.#holders;
    const last = this.#members.pop();
    const at = place[holder] ?? 0;
    if (last !== undefined && last !== holder) {
      this.#members[at] = last;
      place[last] = at;
    }
    this.#ledger.holderCount = this.#members.length;
    this.#isDirty = true;
    this.#countMember(holder, -1);
    if (this.#members.length === 0) this.#partsWeight = 0;
  }

  #countMember(holder: QuotaHolder, change: 1 | -1): void {
    const { party, weight } = this.#holders;
    this.#partsWeight += countMember(party[holder], weight[holder] ?? 0, change);
  }
}

/** A pool without limits divides nothing. */
function ledgerSettings({ limits, ttlMs }: QuotaPoolSettings): LedgerSettings {
  const burst = Math.min(...limits.map((limit) => limit.burst));
  return {
    ttlMs,
    burst: Number.isFinite(burst) ? burst : 0,
    rateMicroHzMax: ceilingMicroHzMax(limits, ttlMs),
  };
}
