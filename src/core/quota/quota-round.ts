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

/**
 * Shares below one hit per second are assigned as single hits. An assigned rate is kept down to
 * half of that.
 */
export const slowMicroHz = microHzPerHz;
const slowKeptMicroHz = slowMicroHz / 2;

/** Minimum change of a share that is sent: a tenth, and much less after a report. */
const keepRatio = 1.1;
const smallRatio = 1.005;

/** A holder whose share is short by this factor lacks rate. */
const lackRatio = 1.02;

/** Time within which a change must move as many hits as its tokens cost. */
const worthSeconds = 10;

/** The fill level, as a fraction, at which a bank counts as full. */
const fullRatio = 0.9;

/** Headroom for holders whose demand was covered. */
const metRatio = 1.02;

/** An excess of a share up to this factor is not taken back. */
const keptRatio = 1.02;

/** Headroom for holders whose demand was not covered. */
const hungryRatio = 1.1;

/** A holder with this fraction of its demand was denied by chance. */
const nearlyRatio = 0.9;

/** If the sum of the shares is too large, each one is reduced by slightly more than necessary. */
const cutRatio = 0.97;

const reportSeconds = quotaReportMs / 1_000;

/** The fraction of the lease that pays for new buckets while the bank is empty. */
const bankShare = 0.05;

/** The fraction of an even share that every holder gets, whatever its demand. */
const floorRatio = 1 / 20;

/** A holder whose demand is this fraction of its share uses it. */
const usedRatio = 0.8;

/** A holder with less than this fraction of its target is served first. */
const poorRatio = 0.5;

/**
 * How long a new bucket waits for a sufficient first share, in milliseconds. By then, others have
 * returned what they had borrowed. Until then, it applies what the quota defines for buckets
 * without an assignment.
 */
const newcomerMsMax = 2 * quotaReportMs + 2 * confirmMs;

/**
 * The sufficient first share of a holder with an unknown demand, as a fraction of an even share.
 */
const fitRatio = 1 / 4;

/** The terms for new holders. There is room if the demand of the others is below the ceiling. */
export interface NewcomerTerms {
  /** See `WantTerms`. */
  readonly evenMicroHz: number;
  readonly hasRoom: boolean;
}

/** Bounds of the demand of a holder. */
export interface WantTerms {
  /** The maximum demand. More than the whole limit can never be assigned. */
  readonly demandMicroHzMax: number;
  /** An even share of what all replicas may assign, for a weight of 1. */
  readonly evenMicroHz: number;
}

/**
 * Returns the rate that must be free before a holder gets its first share, in micro-hits per
 * second; 0: assign whatever is free. A smaller share, or none, would deny requests that the limit
 * has room for. For limits below a few hits per second, single hits are assigned at once.
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

/** The inputs of one round of a pool. */
interface RoundOrder {
  readonly holders: QuotaHolders;
  readonly ledger: QuotaLedger;
  /** The holders with an open stream. */
  readonly members: readonly QuotaHolder[];
  /** Where the round starts. It changes each time, so that no holder is always last. */
  readonly start: number;
  readonly wants: WantTerms;
  readonly newcomers: NewcomerTerms;
  readonly nowMs: number;
}

/**
 * One division of a lease among the holders of a pool:
 *
 * - Targets are computed by water-filling: the last reported demand plus headroom, by weight, where
 *   all streams of one identity share its weight. Each target is at least a twentieth of an even
 *   share. Unclaimed rate is lent.
 * - A holder above its target returns the excess if others need it or the sum is too large.
 * - A holder below its target gets more, as far as there is room and the bank can pay for new
 *   buckets.
 * - Shares below one hit per second are assigned as single hits, in turn.
 */
export class QuotaRound {
  readonly #order: RoundOrder;
  readonly #changes: QuotaChange[] = [];
  readonly #leaseMicroHz: number;
  /** The most that all rates may add up to: the lease without the part for the bank. */
  readonly #roomMicroHz: number;
  /** The rate that holders lack, including those that wait for single hits. */
  #lackMicroHz = 0;
  #waitingCount = 0;
  /** Tokens that are being saved for a holder. */
  #savedHits = 0;

  constructor(order: RoundOrder) {
    this.#order = order;
    const { ledger, nowMs } = order;
    this.#leaseMicroHz = ledger.leaseMicroHz(nowMs);
    const filled = Math.max(0, ledger.bankHits(nowMs)) / ledger.bankHitsMax;
    this.#roomMicroHz = Math.floor(this.#leaseMicroHz * (1 - bankShare * (1 - filled)));
  }

  /** Runs the round and updates the holders. @returns the changes to send */
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

  /** Whether a holder still waits for a share, so that the next round is due soon. */
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
      // Single hits are paid from the bank, so their rate must be left to it.
      if (this.#isSlow(holder)) this.#lackMicroHz += aim;
      else if (aim > (rate[holder] ?? 0) * lackRatio)
        this.#lackMicroHz += aim - (rate[holder] ?? 0);
    }
  }

  #takeBack(): void {
    const { ledger, holders } = this.#order;
    const isOver = ledger.assignedMicroHz > this.#leaseMicroHz;
    const isLacking = this.#lackMicroHz > Math.max(0, this.#roomMicroHz - ledger.heldMicroHz);
    // Reducing one large share frees more rate per token than reducing many small ones.
    if (isOver) {
      this.#each((holder) => {
        if (holders.isHungry[holder] === 1) this.#cut(holder);
      });
      this.#each((holder) => this.#cut(holder));
    }
    if (isLacking) this.#each((holder) => this.#shrink(holder));
  }

  /** Reduces a share because the sum of all shares is too large. */
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

  /** Takes back the excess of a share because other holders need it. */
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

  /** If a holder uses its share, the share is at most halved per round. */
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
    // Single hits leave these tokens untouched, otherwise they would never accumulate.
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

  /** Inflow into a full bank is lost, so tokens cost nothing then. */
  get #isFull(): boolean {
    const { ledger, nowMs } = this.#order;
    return ledger.bankHits(nowMs) >= fullRatio * ledger.bankHitsMax;
  }

  /** Whether a change is worth its tokens: it moves as many hits within ten seconds. */
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

  /** Assigns single hits while the bank has any, to holders with or without unmet demand. */
  #giveHits(hungry: 0 | 1): void {
    const { ledger, holders, members, nowMs } = this.#order;
    const bankHits = ledger.bankHits(nowMs) - this.#savedHits;
    // A holder without demand gets a hit for its next first request, if no other needs it.
    if (bankHits < 1 || (hungry === 0 && bankHits < ledger.bankHitsMax / 2)) return;
    const { isHungry, target, assigned, turn } = holders;
    const waiting = members.filter((holder) => {
      if (!this.#isSlow(holder) || assigned[holder] === assignedRate) return false;
      if (this.#fit(holder) > 0) return false;
      // Envoy only fills a bucket after a blanket rule, so a holder with used hits is denied first.
      return assigned[holder] !== assignedTicket && isHungry[holder] === hungry;
    });
    waiting.sort((one, other) => (turn[one] ?? 0) - (turn[other] ?? 0));
    const first = turn[waiting[0] ?? -1] ?? 0;
    const isFull = this.#isFull;
    let left = Math.floor(Math.min(bankHits, ledger.tokensMax - ledger.tokens));
    for (const [i, holder] of waiting.entries()) {
      // The yield of its share until its next report, if that leaves as much for the others.
      const due = ((target[holder] ?? 0) / microHzPerHz) * reportSeconds;
      const brought = isFull ? Math.ceil(due) : Math.round(due);
      const even = Math.ceil(left / (waiting.length - i));
      const hits = Math.min(left, even, Math.max(1, brought));
      if (hits <= 0) break;
      left -= hits;
      // A holder that returns after a pause does not get the hits that it did not ask for
      // meanwhile.
      turn[holder] = Math.max(turn[holder] ?? 0, first) + hits / holders.partWeight(holder);
      this.#tell(holder, { assigned: assignedTicket, tokens: hits });
    }
  }

  /** Denies holders that have nothing or nothing left, and queues them for single hits. */
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
 * Returns the demand of a holder plus headroom, within what is possible. A holder whose demand is
 * unknown gets an even share, otherwise it would lose its first one.
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
  // A small excess counts as demand, because taking it back costs more.
  return had > wanted && had <= keptRatio * wanted ? had : wanted;
}
