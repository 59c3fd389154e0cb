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
import { createParty, largestCrowds, partsWeight, type QuotaParty } from "./quota-party.js";
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
  /** Of the whole process. */
  readonly holders: QuotaHolders;
  readonly nowMs: number;
}

/** How a pool stands, for people. */
interface QuotaPoolRates {
  readonly heldMicroHz: number;
  readonly leaseMicroHz: number;
  readonly bankHits: number;
}

/** A pool is divided anew at most so often, in milliseconds; the tick of whoever drives it. */
const quotaRoundMs = 250;

/** A pool where nothing happens is looked through so often: time alone ends assignments. */
const quietRoundMs = 1_000;

/** Who was not seen in use for so long is forgotten, in milliseconds. */
export const quotaIdleMs = 60_000;

/** Who has not reported for so long is taken to use all that it has. */
const silentMs = 1.4 * quotaReportMs;

/** Who wants so many times what all want in the mean, for its weight, is claimed for apart. */
const largeRatio = 1.5;

/**
 * One pool of one replica: who reaches it, what they use, and what they may. It is driven from
 * outside: reports and streams come in, its hits are charged to the store, its lease is exchanged
 * with the other replicas, and it is divided each `quotaRoundMs` where anything has changed.
 *
 * What it gives and may have given is in `QuotaLedger`, what was used in `QuotaAccount`, how it is
 * divided in `QuotaRound`; what all of that bounds stands in docs/internals/quotas.md.
 */
export class QuotaPool {
  readonly #holders: QuotaHolders;
  readonly #ledger: QuotaLedger;
  readonly #account: QuotaAccount;
  readonly #meter: QuotaMeter;
  readonly #members: QuotaHolder[] = [];
  /** Streams that are closed: they count until their time is up. */
  readonly #left: QuotaHolder[] = [];
  /** By identity. */
  readonly #parties = new Map<string, QuotaParty>();
  #settings: QuotaPoolSettings;
  /** What all members weigh. */
  #partsWeight = 0;
  /** What all wanted in the last round. */
  #askedMicroHz = 0;
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

  /** Holders whose streams are open. */
  get holderCount(): number {
    return this.#members.length;
  }

  /** Holders that count: also those whose streams are closed, until their time is up. */
  get countedCount(): number {
    return this.#members.length + this.#left.length;
  }

  /** What all of them want. */
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

  /** What may be active, what may be handed out, and tokens that are left for new buckets. */
  rates(nowMs: number): QuotaPoolRates {
    const ledger = this.#ledger;
    const leaseMicroHz = ledger.leaseMicroHz(nowMs);
    return { heldMicroHz: ledger.heldMicroHz, leaseMicroHz, bankHits: ledger.bankHits(nowMs) };
  }

  /** Hits that are used of each limit, as far as is known; undefined before anything is. */
  levels(nowMs: number): readonly number[] | undefined {
    return this.#account.levels(nowMs);
  }

  /** The policy, an override or a freeze says something else now: everybody is told in a round. */
  configure(settings: QuotaPoolSettings, nowMs: number): void {
    this.#settings = settings;
    this.#ledger.configure(ledgerSettings(settings), nowMs);
    this.#account.configure(settings, nowMs);
    this.#isDirty = true;
    this.#roundMs = nowMs - quietRoundMs;
  }

  /**
   * A bucket that is new on its stream; undefined where there are as many as there may be.
   *
   * @param joining `identity` is whose stream it is, as in `QuotaCrowd`; `bytes` are kept of it
   */
  join(
    {
      weight,
      identity,
      bytes = 0,
    }: { readonly weight: number; readonly identity: string; readonly bytes?: number },
    nowMs: number,
  ): QuotaHolder | undefined {
    assert(weight > 0, "a weight above 0");
    const party = this.#parties.get(identity) ?? createParty(identity, nowMs);
    const holder = this.#holders.add(party, bytes);
    if (holder === undefined) return undefined;
    this.#parties.set(identity, party);
    this.#holders.reset(holder, weight, nowMs);
    this.#enter(holder);
    return holder;
  }

  /** Its stream is closed. @returns until when it counts, and may `rejoin` */
  leave(holder: QuotaHolder, nowMs: number): number {
    const holders = this.#holders;
    this.#meter.estimate(holder, 0, nowMs);
    this.#exit(holder);
    holders.isLeft[holder] = 1;
    this.#left.push(holder);
    return Math.max(nowMs, holders.untilMs[holder] ?? 0, holders.heldUntilMs[holder] ?? 0);
  }

  /** The same Envoy is back on another stream, before it was forgotten. */
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
    // Another replica may have told it something meanwhile, until what is said now arrives.
    holders.wasOpen[holder] = 2;
    this.#enter(holder);
  }

  /** Takes in what a holder reports. What cannot be is cut to what can, and credits nothing. */
  report(holder: QuotaHolder, usage: QuotaUsage, nowMs: number): UsageVerdict {
    const part = partsWeight(this.#holders.party[holder]) / this.#partsWeight;
    const openMicroHz = this.#account.rateMicroHzMax * Math.min(1, part);
    // Of no time an Envoy tells only where the bucket is new to it: after a restart it has none.
    if (usage.elapsedMs === 0) this.#ledger.payAgain(holder, nowMs);
    const { verdict, isTaken, isOther } = this.#meter.read(holder, usage, { openMicroHz, nowMs });
    const isFreed = isTaken && this.#ledger.confirm(holder);
    if (isOther || isFreed) this.#isDirty = true;
    return verdict;
  }

  /** What to answer a report with at once; undefined where there is nothing that may be said. */
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
      // The next round may give it another one: only after a blanket rule a bucket is a full one.
      this.#ledger.tell(holder, { assigned: assignedDeny }, nowMs);
      this.#isDirty = true;
    } else this.#ledger.renew(holder, nowMs);
    return this.#ledger.assignment(holder, ttlMs);
  }

  /** Whether a round would change anything, or is due by time. */
  isDue(nowMs: number): boolean {
    const sinceMs = nowMs - this.#roundMs;
    return sinceMs >= (this.#isDirty ? quotaRoundMs : quietRoundMs) && this.countedCount > 0;
  }

  /** Divides the pool. @returns what is to be sent now */
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

  /** Whole hits to charge to all limits now; `charged` or `missed` is to follow, unless it is 0. */
  dueHits(nowMs: number): number {
    return this.#account.take(nowMs);
  }

  /** The store took them, or told its levels. */
  charged(charged: QuotaCharged, nowMs: number): void {
    this.#account.charged(charged, nowMs);
  }

  /** The store did not take them, as far as anybody knows. */
  missed(hits: number, nowMs: number): void {
    this.#account.missed(hits, nowMs);
  }

  /** Whether the levels should be asked for, where there is nothing to charge. */
  wantsLevel(nowMs: number): boolean {
    return this.#plain() === undefined && this.#account.wantsLevel(nowMs);
  }

  /**
   * What this replica asks of the pool. Replicas are divided by what two kinds of holders want and
   * weigh: those who want little, and those who want much. Thrown together, the weight of the many
   * would count for what the few want. An identity weighs here by the part of its Envoys that this
   * replica has.
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
    // Who is there at all has room for those who come next.
    const least = this.#members.length === 0 ? 0 : ceilingMicroHz / 100;
    return {
      metMicroHz: Math.floor(Math.max(met, hungry > 0 ? 0 : least)),
      hungryMicroHz: Math.floor(hungry),
      hungryWeight: claimedWeight(hungryWeight),
      weight: claimedWeight(this.#partsWeight),
      heldMicroHz: Math.max(this.#ledger.heldMicroHz, this.#ledger.leaseMicroHz(nowMs)),
      ceilingMicroHz,
      crowds: largestCrowds(this.#parties.values()),
    };
  }

  /** What may be handed out from now on. */
  lease(lease: QuotaLease, nowMs: number): void {
    const before = this.#ledger.leaseMicroHz(nowMs);
    this.#ledger.lease(lease, nowMs);
    this.#meetElsewhere(lease.elsewhere);
    this.#account.lease(lease.rateMicroHz, nowMs);
    const isNear = Math.abs(lease.rateMicroHz - before) <= 0.02 * before;
    if (!isNear || this.#ledger.assignedMicroHz > lease.rateMicroHz) this.#isDirty = true;
  }

  /** Everybody in it, for people. */
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
    const counts = new Map(crowds.map(({ identity, count }) => [identity, count]));
    let weight = 0;
    for (const [identity, party] of this.#parties) {
      const count = counts.get(identity) ?? 0;
      if (party.elsewhere !== count) this.#isDirty = true;
      party.elsewhere = count;
      weight += partsWeight(party);
    }
    this.#partsWeight = weight;
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

  /** The first share of somebody new, without a division: an even one, as far as there is room. */
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

  /** Everything that time alone does. */
  #look(nowMs: number): readonly QuotaChange[] {
    const { reportedMs, rate, assigned, usedMs, wasOpen } = this.#holders;
    const idle: QuotaHolder[] = [];
    for (const holder of this.#members) {
      // Until it hears from us again it goes by what its quota says for after an assignment.
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
      this.#holders.remove(holder);
    }
    for (const [name, party] of this.#parties) {
      if (party.holderCount === 0 && isOpenPaid(party, nowMs)) this.#parties.delete(name);
    }
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
    this.#members.push(holder);
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
    const { party: parties, weight: weights } = this.#holders;
    const party = parties[holder];
    const weight = weights[holder] ?? 0;
    if (party === undefined) return;
    const before = partsWeight(party);
    const known = party.members.find((one) => one.weight === weight);
    if (known === undefined) party.members.push({ weight, count: change });
    else known.count += change;
    party.weight += weight * change;
    party.crowd = party.members.reduce((most, { count }) => Math.max(most, count), 0);
    this.#partsWeight += partsWeight(party) - before;
  }
}

/** A weight of somebody is one, however small. */
function claimedWeight(weight: number): number {
  return Math.ceil(weight * claimedWeightUnit);
}

/** Of a pool that nothing limits there is nothing to divide. */
function ledgerSettings({ limits, ttlMs }: QuotaPoolSettings): LedgerSettings {
  const burst = Math.min(...limits.map((limit) => limit.burst));
  return {
    ttlMs,
    burst: Number.isFinite(burst) ? burst : 0,
    rateMicroHzMax: ceilingMicroHzMax(limits, ttlMs),
  };
}
