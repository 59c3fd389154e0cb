import { microHzPerHz, type QuotaChange, type QuotaHolder, quotaReportMs } from "./quota.js";
import { divideRate } from "./quota-division.js";
import {
  assignedAllow,
  assignedDeny,
  assignedNothing,
  assignedRate,
  assignedTicket,
  type QuotaHolders,
} from "./quota-holders.js";
import { confirmMs, type QuotaLedger, type Telling } from "./quota-ledger.js";

/** Shares below one hit a second are given hit by hit; who has a rate keeps it down to half. */
export const slowMicroHz = microHzPerHz;
const slowKeptMicroHz = slowMicroHz / 2;

/** What a share has to differ by to be told: a tenth, and next to nothing after a report. */
const keepRatio = 1.1;
const smallRatio = 1.005;

/** Who has less than its share by this part lacks it. */
const lackRatio = 1.02;

/** Time in which a change has to move as many hits as it costs tokens. */
const worthSeconds = 10;

/** A bank that is as full as that, as a part. */
const fullRatio = 0.9;

/** What is left to those who had what they asked for, beyond that. */
const metRatio = 1.02;

/** What is too much by less than this part is left to them. */
const keptRatio = 1.02;

/** What those want who did not get what they asked for. */
const hungryRatio = 1.1;

/** Who has this part of what it asked for, and was denied, is short by chance. */
const nearlyRatio = 0.9;

/** Where all together have too much, each gives up a little more than it must. */
const cutRatio = 0.97;

const reportSeconds = quotaReportMs / 1_000;

/** What is kept out of rates, to pay for new buckets, while the bank is empty. */
const bankShare = 0.05;

/** The part of an even share that everybody gets, whatever it asks for. */
const floorRatio = 1 / 20;

/** Who asks for this part of its share uses it. */
const usedRatio = 0.8;

/** Who has less than this part of its share is served first. */
const poorRatio = 0.5;

/**
 * How long a bucket goes by what its quota says for before the first assignment where nothing fit
 * to be told is left: others have given back by then what they were lent. In milliseconds.
 */
const newcomerMsMax = 2 * quotaReportMs + 2 * confirmMs;

/** The part of an even share of all there may be that is fit for one of whom nobody knows. */
const fitRatio = 1 / 4;

/**
 * What fits those who are new, while there is room: where all that others ask for is less than
 * there may be.
 */
export interface NewcomerTerms {
  /** See `WantTerms`. */
  readonly evenMicroHz: number;
  readonly hasRoom: boolean;
}

/** What bounds what a holder is taken to want. */
export interface WantTerms {
  /** What it may want at most: more than all of the limit is nothing that it could have. */
  readonly demandMicroHzMax: number;
  /** An even share of what all replicas may hand out, for a weight of 1. */
  readonly evenMicroHz: number;
}

/**
 * What has to be free before a holder is told its first share, in micro-hits a second; 0: it is
 * told whatever there is. A share of what is left by chance, or none, would deny what the limit has
 * room for. Of limits below some hits a second single hits are told at once.
 */
export function fitMicroHz(
  holders: QuotaHolders,
  holder: QuotaHolder,
  { newcomers: { evenMicroHz, hasRoom }, nowMs }: Pick<RoundOrder, "newcomers" | "nowMs">,
): number {
  const isNew = nowMs - (holders.changedMs[holder] ?? 0) < newcomerMsMax;
  if (!hasRoom || !isNew || holders.assigned[holder] !== assignedNothing) return 0;
  const fit = fitRatio * evenMicroHz * holders.partWeight(holder);
  return fit < slowMicroHz ? 0 : fit;
}

/** What one round of a pool is about. */
interface RoundOrder {
  readonly holders: QuotaHolders;
  readonly ledger: QuotaLedger;
  /** Those whose streams are open. */
  readonly members: readonly QuotaHolder[];
  /** Where the round begins: another place each time, so that nobody is always the last. */
  readonly start: number;
  readonly wants: WantTerms;
  readonly newcomers: NewcomerTerms;
  readonly nowMs: number;
}

/**
 * One division of a lease among the holders of a pool:
 *
 * - targets by water-filling: what was asked for in the last report and a little more, by weight,
 *   which all streams of one identity share;
 *   at least a twentieth of an even share; what nobody asks for is lent
 * - who has more than its target gives it back, while others need it or all have too much together
 * - who has less gets more, as far as there is room and the bank can pay for new buckets
 * - shares below a hit a second are given hit by hit, to whose turn it is
 */
export class QuotaRound {
  readonly #order: RoundOrder;
  readonly #changes: QuotaChange[] = [];
  readonly #leaseMicroHz: number;
  /** What rates may come to: the lease, without what the bank needs. */
  readonly #roomMicroHz: number;
  /** What those who want more lack, with those who wait for single hits. */
  #lackMicroHz = 0;
  #waitingCount = 0;
  /** Tokens that somebody is saving for. */
  #savedHits = 0;

  constructor(order: RoundOrder) {
    this.#order = order;
    const { ledger, nowMs } = order;
    this.#leaseMicroHz = ledger.leaseMicroHz(nowMs);
    const filled = Math.max(0, ledger.bankHits(nowMs)) / ledger.bankHitsMax;
    this.#roomMicroHz = Math.floor(this.#leaseMicroHz * (1 - bankShare * (1 - filled)));
  }

  /** Tells holders what follows. @returns what is to be sent */
  run(): readonly QuotaChange[] {
    this.#aim();
    this.#takeBack();
    this.#growPoor(1);
    this.#giveHits(1);
    this.#growAll();
    this.#growPoor(0);
    this.#giveHits(0);
    this.#denyOthers();
    return this.#changes;
  }

  /** Whether somebody still waits for a share, so that the next round is due soon. */
  get isWaiting(): boolean {
    return this.#waitingCount > 0;
  }

  #aim(): void {
    const { holders, members, wants } = this.#order;
    const { rate, target, isHungry } = holders;
    const columns = holders.scratch(members.length);
    const floor = (floorRatio * this.#leaseMicroHz) / Math.max(1, members.length);
    for (let i = 0; i < members.length; i += 1) {
      const holder = members[i];
      if (holder === undefined) continue;
      columns.most[i] = wantedMicroHz(holders, holder, wants);
      columns.least[i] = floor;
      columns.weight[i] = holders.partWeight(holder);
    }
    divideRate(this.#roomMicroHz, columns, members.length);
    for (let i = 0; i < members.length; i += 1) {
      const holder = members[i];
      if (holder === undefined) continue;
      const aim = columns.target[i] ?? 0;
      target[holder] = aim;
      if (isHungry[holder] !== 1 && this.#fit(holder) === 0) continue;
      // What is given hit by hit flows through the bank, and so has to be left to it.
      if (this.#isSlow(holder)) this.#lackMicroHz += aim;
      else if (aim > (rate[holder] ?? 0) * lackRatio)
        this.#lackMicroHz += aim - (rate[holder] ?? 0);
    }
  }

  #takeBack(): void {
    const { ledger, holders } = this.#order;
    const isOver = ledger.assignedMicroHz > this.#leaseMicroHz;
    const isLacking = this.#lackMicroHz > Math.max(0, this.#roomMicroHz - ledger.heldMicroHz);
    // One large share that is cut makes more room for its tokens than many small ones.
    if (isOver) {
      this.#each((holder) => {
        if (holders.isHungry[holder] === 1) this.#cut(holder);
      });
      this.#each((holder) => this.#cut(holder));
    }
    if (isLacking) this.#each((holder) => this.#shrink(holder));
  }

  /** All together have too much. */
  #cut(holder: QuotaHolder): void {
    const { ledger, holders, nowMs } = this.#order;
    const had = holders.rate[holder] ?? 0;
    const aim = holders.target[holder] ?? 0;
    const isEnough = ledger.assignedMicroHz <= this.#roomMicroHz;
    if (isEnough || holders.assigned[holder] !== assignedRate || had <= aim) return;
    const next = Math.floor(had <= aim * keepRatio ? aim * cutRatio : aim);
    const tokens = ledger.tokensOf(holder, next, nowMs);
    if (next >= slowKeptMicroHz && ledger.canLend(holder, tokens, nowMs)) {
      this.#tell(holder, { assigned: assignedRate, rateMicroHz: next, tokens });
    } else this.#tell(holder, { assigned: assignedDeny });
  }

  /** Others want what it does not need, or has above its share. */
  #shrink(holder: QuotaHolder): void {
    const { ledger, holders, nowMs } = this.#order;
    const had = holders.rate[holder] ?? 0;
    const aim = holders.target[holder] ?? 0;
    if (holders.assigned[holder] !== assignedRate || had <= aim) return;
    const next = Math.floor(this.#eased(holder));
    if (next < slowKeptMicroHz) {
      this.#tell(holder, { assigned: assignedDeny });
      return;
    }
    const tokens = ledger.tokensOf(holder, next, nowMs);
    if (this.#isWorth(holder, next, tokens) && ledger.canPay(holder, tokens, nowMs)) {
      this.#tell(holder, { assigned: assignedRate, rateMicroHz: next, tokens });
    }
  }

  /** Who uses what it has loses at most half of it at once, where there is no need. */
  #eased(holder: QuotaHolder): number {
    const { demand, rate, target } = this.#order.holders;
    const had = rate[holder] ?? 0;
    const aim = target[holder] ?? 0;
    return (demand[holder] ?? 0) >= usedRatio * had ? Math.max(aim, had / 2) : aim;
  }

  #growPoor(hungry: 0 | 1): void {
    const { isHungry, rate, target } = this.#order.holders;
    this.#each((holder) => {
      const isPoor = (rate[holder] ?? 0) < poorRatio * (target[holder] ?? 0);
      if (isPoor && isHungry[holder] === hungry) this.#raise(holder);
    });
  }

  #growAll(): void {
    const { isHungry } = this.#order.holders;
    this.#each((holder) => {
      if (isHungry[holder] === 1) this.#raise(holder);
    });
  }

  #raise(holder: QuotaHolder): void {
    const { ledger, holders, nowMs } = this.#order;
    const had = holders.rate[holder] ?? 0;
    const aim = holders.target[holder] ?? 0;
    if (this.#isSlow(holder) || aim <= had) return;
    const room = this.#roomMicroHz - ledger.heldMicroHz + (holders.held[holder] ?? 0);
    const next = Math.min(aim, Math.floor(room));
    if (next < this.#fit(holder)) return;
    const tokens = ledger.tokensOf(holder, next, nowMs);
    if (!this.#isWorth(holder, aim, tokens)) return;
    const isWorth = next >= slowMicroHz && this.#isWorth(holder, next, tokens);
    if (isWorth && ledger.canPay(holder, tokens, nowMs)) {
      this.#tell(holder, { assigned: assignedRate, rateMicroHz: next, tokens });
      return;
    }
    if (holders.isHungry[holder] !== 1) return;
    this.#waitingCount += 1;
    // Single hits leave what this one needs, or it would never come to be.
    if (isWorth && had < poorRatio * aim) this.#savedHits = Math.max(this.#savedHits, tokens);
  }

  /** See `fitMicroHz`. */
  #fit(holder: QuotaHolder): number {
    return fitMicroHz(this.#order.holders, holder, this.#order);
  }

  #isSlow(holder: QuotaHolder): boolean {
    const { target, assigned } = this.#order.holders;
    const least = assigned[holder] === assignedRate ? slowKeptMicroHz : slowMicroHz;
    return (target[holder] ?? 0) < least;
  }

  /** What flows into a full bank is lost: then tokens cost nothing. */
  get #isFull(): boolean {
    const { ledger, nowMs } = this.#order;
    return ledger.bankHits(nowMs) >= fullRatio * ledger.bankHitsMax;
  }

  /** Whether a change is worth its tokens: within ten seconds it has moved as many hits. */
  #isWorth(holder: QuotaHolder, next: number, tokens: number): boolean {
    const { ledger, holders, nowMs } = this.#order;
    const had = holders.rate[holder] ?? 0;
    const moved = Math.abs(next - had);
    const isOld = nowMs - (holders.changedMs[holder] ?? 0) >= quotaReportMs;
    const least = had * ((isOld ? smallRatio : keepRatio) - 1);
    const cost = ledger.costOf(holder, tokens, nowMs) * microHzPerHz;
    const isPaid = this.#isFull || moved * worthSeconds >= cost;
    return moved > least && isPaid;
  }

  /** Gives single hits while the bank has some: to who asks for more, or to who has none at all. */
  #giveHits(hungry: 0 | 1): void {
    const { ledger, holders, members, nowMs } = this.#order;
    const bankHits = ledger.bankHits(nowMs) - this.#savedHits;
    // Who asks for nothing has a hit for the first request of many, where nobody else needs it.
    if (bankHits < 1 || (hungry === 0 && bankHits < ledger.bankHitsMax / 2)) return;
    const { isHungry, target, assigned, turn } = holders;
    const waiting = members.filter((holder) => {
      if (!this.#isSlow(holder) || assigned[holder] === assignedRate) return false;
      if (this.#fit(holder) > 0) return false;
      // Envoy fills a bucket only after a blanket rule: who has used its hits is denied first.
      return assigned[holder] !== assignedTicket && isHungry[holder] === hungry;
    });
    waiting.sort((one, other) => (turn[one] ?? 0) - (turn[other] ?? 0));
    const first = turn[waiting[0] ?? -1] ?? 0;
    const isFull = this.#isFull;
    let left = Math.floor(Math.min(bankHits, ledger.tokensMax - ledger.tokens));
    for (const [i, holder] of waiting.entries()) {
      // What its share brings until its next report, as long as there is as much for the others.
      const due = ((target[holder] ?? 0) / microHzPerHz) * reportSeconds;
      const brought = isFull ? Math.ceil(due) : Math.round(due);
      const even = Math.ceil(left / (waiting.length - i));
      const hits = Math.min(left, even, Math.max(1, brought));
      if (hits <= 0) break;
      left -= hits;
      // Who comes back after a while does not get all that it did not ask for.
      turn[holder] = Math.max(turn[holder] ?? 0, first) + hits / holders.partWeight(holder);
      this.#tell(holder, { assigned: assignedTicket, tokens: hits });
    }
  }

  /** Who has nothing, or nothing left, is told so; its place is with those who wait for hits. */
  #denyOthers(): void {
    const { isSpent, assigned } = this.#order.holders;
    this.#each((holder) => {
      if (this.#fit(holder) > 0) {
        this.#waitingCount += 1;
        return;
      }
      const isUsedUp = assigned[holder] === assignedTicket && isSpent[holder] === 1;
      const isUnlimited =
        assigned[holder] === assignedNothing || assigned[holder] === assignedAllow;
      if (isUsedUp) this.#waitingCount += 1;
      if (isUsedUp || isUnlimited) this.#tell(holder, { assigned: assignedDeny });
    });
  }

  #each(visit: (holder: QuotaHolder) => void): void {
    const { members, start } = this.#order;
    const count = members.length;
    for (let i = 0; i < count; i += 1) {
      const holder = members[(start + i) % count];
      if (holder !== undefined) visit(holder);
    }
  }

  #tell(holder: QuotaHolder, telling: Telling): void {
    const { ledger, nowMs } = this.#order;
    const ttlMs = ledger.ttlMs(nowMs);
    if (ttlMs === undefined) return;
    ledger.tell(holder, telling, nowMs);
    const assignment = ledger.assignment(holder, ttlMs);
    if (assignment !== undefined) this.#changes.push({ kind: "assign", holder, assignment });
  }
}

/**
 * What a holder wants: what it asked for, within what there can be of it, and a little more. Who
 * has not told that yet is taken to want an even share, or it would lose its first one.
 */
export function wantedMicroHz(
  holders: QuotaHolders,
  holder: QuotaHolder,
  { demandMicroHzMax, evenMicroHz }: WantTerms,
): number {
  if (holders.isMeasured[holder] !== 1) return evenMicroHz * holders.partWeight(holder);
  const asked = Math.min(holders.demand[holder] ?? 0, demandMicroHzMax);
  const had = holders.rate[holder] ?? 0;
  const isShort = had < nearlyRatio * asked;
  if (holders.isHungry[holder] === 1 && isShort) return hungryRatio * asked;
  const wanted = metRatio * asked;
  // What is a little too much already is what it wants: to take it back costs more.
  return had > wanted && had <= keptRatio * wanted ? had : wanted;
}
