import { microHzPerHz, type QuotaHolder, type QuotaUsage, quotaReportMs } from "./quota.js";
import type { QuotaAccount } from "./quota-account.js";
import {
  assignedAllow,
  assignedDeny,
  assignedNothing,
  assignedRate,
  assignedTicket,
  type QuotaHolders,
} from "./quota-holders.js";
import { confirmMs } from "./quota-ledger.js";
import type { QuotaParty } from "./quota-party.js";

/** Maximum time that a report can cover. */
const quotaElapsedMsMax = 3_600_000;

/** Tolerance for reports above the assignment: rounding, and clock drift. */
const slackRatio = 1.1;
const slackHits = 2;

/** Maximum delay of a report: the yield of a rate in this time may be reported late. */
const lateMsMax = 2 * quotaReportMs + confirmMs;

/**
 * What is accepted from Envoys that had no assignment, or another replica's. Per identity and
 * minute: what its share of the limit yields between two reports and during their delivery, and a
 * few hits.
 */
const openSeconds = (quotaReportMs + confirmMs) / 1_000;
const openHitsLeast = 10;
const openPaidMs = 60_000;

/** How much faster a report's clock is assumed to run, so that it never falls behind for good. */
const clockRatio = 1.02;

/** A report that covers less time says nothing about the rate of hits. */
const demandMsMin = quotaReportMs / 10;

/** Reports of fewer hits have less influence, by at least this factor. */
const rareHits = 10;
const rareWeight = 0.2;

/** So do reports within this many standard deviations of what was expected. */
const chanceDeviations = 2;

/** A holder that uses less than this, one hit in two minutes, does not wait for a share. */
const rareMicroHz = microHzPerHz / 120;

/** A demand that differs by at most this fraction changes nothing. */
const steadyRatio = 0.1;

/**
 * The verdict on a report: plausible, more than assigned, more than is accepted without an
 * assignment, or an impossible time.
 */
export type UsageVerdict = "plausible" | "too_much" | "unassigned" | "elapsed";

/** The result of reading a report. */
interface MeterReading {
  readonly verdict: UsageVerdict;
  /** The time up to which it describes usage. */
  readonly clockMs: number;
  /** Whether it confirms the last assignment of its holder. */
  readonly isTaken: boolean;
  /** Whether the demand of its holder has changed. */
  readonly isOther: boolean;
}

/**
 * Reads the reports of holders. Usage goes to the account, demand goes to the holder's columns.
 *
 * A delayed report does not cover the time of its delivery. Each holder therefore has a report
 * clock. It starts when the holder joins, and each report advances it by the time that the report
 * covers, at most to now. A report describes usage up to its clock. Usage estimated for later is
 * left to the next report.
 */
export class QuotaMeter {
  readonly #holders: QuotaHolders;
  readonly #account: QuotaAccount;

  constructor(holders: QuotaHolders, account: QuotaAccount) {
    this.#holders = holders;
    this.#account = account;
  }

  /**
   * Reads a report. Impossible values are reduced to the maximum possible, and credit nothing.
   *
   * @param terms `openMicroHz` is its party's share of the limit
   */
  read(holder: QuotaHolder, usage: QuotaUsage, { openMicroHz, nowMs }: ReadTerms): MeterReading {
    const { changedMs, clockMs: clocks, reportedMs, wasOpen } = this.#holders;
    const isTimed = usage.elapsedMs >= 0 && usage.elapsedMs <= quotaElapsedMsMax;
    const elapsedMs = isTimed ? usage.elapsedMs : nowMs - (reportedMs[holder] ?? nowMs);
    const clockMs = Math.min(nowMs, (clocks[holder] ?? 0) + elapsedMs * clockRatio);
    const isOpen = wasOpen[holder] !== 0 || this.#isOpen(holder);
    const claimed = { hits: usage.allowedHits, isOpen, openMicroHz };
    const allowedHits = this.#takeAllowed(holder, claimed, nowMs);
    this.#settle(holder, { allowedHits, clockMs, isCredited: isTimed }, nowMs);
    const takenMs = (changedMs[holder] ?? 0) + confirmMs;
    const isTaken = clockMs >= takenMs;
    const isCovered = (clocks[holder] ?? 0) >= takenMs;
    const { deniedHits } = usage;
    const isOther = this.#note(holder, { allowedHits, deniedHits, elapsedMs, isCovered }, nowMs);
    reportedMs[holder] = nowMs;
    clocks[holder] = clockMs;
    // A late report may have been sent before the last assignment arrived. The next one covers
    // both.
    if (clockMs >= (changedMs[holder] ?? 0)) this.#settleTop(holder);
    wasOpen[holder] = this.#isOpen(holder) ? 1 : Math.max(0, (wasOpen[holder] ?? 0) - 1);
    const isCut = allowedHits < usage.allowedHits;
    const cut = isOpen ? "unassigned" : "too_much";
    const verdict = !isTimed ? "elapsed" : isCut ? cut : "plausible";
    return { verdict, clockMs, isTaken, isOther };
  }

  /**
   * Updates the estimate after a new assignment: the demand, limited by the assignment. The
   * previous estimate would be charged for five more seconds, and would be wrong.
   */
  expect(holder: QuotaHolder, nowMs: number): void {
    const { demand, rate, assigned } = this.#holders;
    const most = assigned[holder] === assignedRate ? (rate[holder] ?? 0) : 0;
    this.estimate(holder, Math.min(demand[holder] ?? 0, most), nowMs);
  }

  /** Replaces the estimate of a holder's usage until its next report. */
  estimate(holder: QuotaHolder, microHz: number, nowMs: number): void {
    const { aheadHits, estimate, reportedMs } = this.#holders;
    const before = estimate[holder] ?? 0;
    if (before === microHz) return;
    // Apply the new estimate from the last report on, minus what has been charged already.
    const seconds = (nowMs - (reportedMs[holder] ?? nowMs)) / 1_000;
    aheadHits[holder] =
      (aheadHits[holder] ?? 0) + ((before - microHz) * Math.max(0, seconds)) / microHzPerHz;
    this.#account.estimate(microHz - before, nowMs);
    estimate[holder] = microHz;
  }

  /**
   * Returns the admitted hits that are accepted: what was assigned since the last report, by this
   * replica's clock, not by the time in the report. More is accepted only if nothing was assigned.
   */
  #takeAllowed(
    holder: QuotaHolder,
    { hits, isOpen, openMicroHz }: ClaimedUse,
    nowMs: number,
  ): number {
    const { party: parties, reportedMs, assigned, top, unreported } = this.#holders;
    if (assigned[holder] === assignedAllow) return hits;
    const sinceMs = Math.max(0, nowMs - (reportedMs[holder] ?? nowMs));
    const brought = ((top[holder] ?? 0) * sinceMs * slackRatio) / 1_000 / microHzPerHz;
    const allowance = (unreported[holder] ?? 0) + brought;
    const party = parties[holder];
    const own = Math.min(hits, Math.ceil(allowance + (isOpen ? 0 : slackHits)));
    // Usage before the first assignment here must not be offset by that assignment.
    const isMixed = isOpen && !this.#isOpen(holder);
    unreported[holder] = isMixed ? allowance : allowance - own;
    if (own === hits || party === undefined || !isOpen) return own;
    return own + takeOpen(party, hits - own, { openMicroHz, nowMs });
  }

  #isOpen(holder: QuotaHolder): boolean {
    const { assigned } = this.#holders;
    return assigned[holder] === assignedNothing || assigned[holder] === assignedAllow;
  }

  /** Keeps, of all earlier assignments, only what may still be active or be reported late. */
  #settleTop(holder: QuotaHolder): void {
    const { held, tokens, top, unreported } = this.#holders;
    const rate = held[holder] ?? 0;
    const lateHits = (rate * lateMsMax) / 1_000 / microHzPerHz;
    top[holder] = rate;
    const most = (tokens[holder] ?? 0) + lateHits;
    unreported[holder] = Math.min(unreported[holder] ?? 0, most);
  }

  #settle(
    holder: QuotaHolder,
    { allowedHits, clockMs, isCredited }: SettledUse,
    nowMs: number,
  ): void {
    const { aheadHits, estimate, reportedMs } = this.#holders;
    const hz = (estimate[holder] ?? 0) / microHzPerHz;
    const sinceMs = nowMs - (reportedMs[holder] ?? nowMs);
    const charged = (aheadHits[holder] ?? 0) + (hz * sinceMs) / 1_000;
    const ahead = Math.max(0, Math.min(charged, (hz * (nowMs - clockMs)) / 1_000));
    const difference = allowedHits - (charged - ahead);
    this.#account.accrue(nowMs);
    if (difference > 0) this.#account.owe(difference);
    else if (isCredited) this.#account.prepay(-difference, nowMs);
    aheadHits[holder] = ahead;
  }

  /**
   * Whether its single hits are nearly used up. A denied request normally shows that none is left,
   * even if the report of their use was lost; otherwise the holder would wait forever. But if the
   * denial was before the hits arrived, they are still there, and must not be taken.
   */
  #isUsedUp(holder: QuotaHolder, { allowedHits, deniedHits, isCovered }: NotedUse): boolean {
    return 2 * allowedHits >= (this.#holders.tokens[holder] ?? 0) || (deniedHits > 0 && isCovered);
  }

  #note(holder: QuotaHolder, usage: NotedUse, nowMs: number): boolean {
    const { demand, estimate, isHungry, isMeasured, isSpent, rate, assigned, usedMs } =
      this.#holders;
    const { allowedHits, deniedHits, elapsedMs } = usage;
    const askedHits = allowedHits + deniedHits;
    const timedMs = elapsedMs < demandMsMin ? quotaReportMs : elapsedMs;
    const before = demand[holder] ?? 0;
    const wasHungry = isHungry[holder] ?? 0;
    const expectedHits = (before * timedMs) / 1_000 / microHzPerHz;
    const weight = weightOf(askedHits, expectedHits);
    const asked = before + weight * (microHzOf(askedHits, timedMs) - before);
    const usedMicroHz = Math.min(asked, microHzOf(allowedHits, timedMs));
    if (askedHits > 0) usedMs[holder] = nowMs;
    if (elapsedMs >= demandMsMin) isMeasured[holder] = 1;
    if (assigned[holder] === assignedTicket && this.#isUsedUp(holder, usage)) isSpent[holder] = 1;
    if (deniedHits > 0) isHungry[holder] = 1;
    else if (allowedHits > 0 || weight === 1 || asked < rareMicroHz) isHungry[holder] = 0;
    demand[holder] = asked;
    const most = assigned[holder] === assignedAllow ? usedMicroHz : (rate[holder] ?? 0);
    // A single hit is charged when it is reported. There is no rate to estimate.
    const isEstimated = assigned[holder] !== assignedTicket && assigned[holder] !== assignedDeny;
    const next = isEstimated ? Math.min(usedMicroHz, most) : 0;
    this.#account.estimate(next - (estimate[holder] ?? 0), nowMs);
    estimate[holder] = next;
    const isSteady = Math.abs(asked - before) <= steadyRatio * before;
    return !isSteady || wasHungry !== isHungry[holder] || isSpent[holder] === 1;
  }
}

/**
 * How much weight a report has for its holder's demand. A few hits more or less are random. If each
 * report had full weight, shares would be revoked and assigned after each report, and be unused in
 * between.
 *
 * Example: with 36 hits expected, 43 hits have a fifth of the weight, 50 hits have full weight.
 */
function weightOf(askedHits: number, expectedHits: number): number {
  const chanceHits = chanceDeviations * Math.sqrt(Math.max(1, expectedHits));
  if (Math.abs(askedHits - expectedHits) <= chanceHits) return rareWeight;
  return Math.min(1, Math.max(rareWeight, Math.max(askedHits, expectedHits) / rareHits));
}

function microHzOf(hits: number, elapsedMs: number): number {
  return (hits * 1_000 * microHzPerHz) / elapsedMs;
}

/** Takes hits of unknown origin from the party's allowance. @returns how many are accepted */
function takeOpen(party: QuotaParty, hits: number, { openMicroHz, nowMs }: ReadTerms): number {
  const most = Math.ceil((openMicroHz / microHzPerHz) * openSeconds * slackRatio) + openHitsLeast;
  const paid = (most * Math.max(0, nowMs - party.openMs)) / openPaidMs;
  const used = Math.max(0, Math.min(party.openHits, most) - paid);
  const taken = Math.max(0, Math.min(hits, Math.floor(most - used)));
  party.openHits = used + taken;
  party.openMs = nowMs;
  return taken;
}

/** Whether a departed party may be forgotten: it would have no larger allowance on return. */
export function isOpenPaid({ openHits, openMs }: QuotaParty, nowMs: number): boolean {
  return openHits === 0 || nowMs - openMs >= openPaidMs;
}

interface ClaimedUse {
  readonly hits: number;
  /** Whether something other than an assignment from here may have limited it. */
  readonly isOpen: boolean;
  readonly openMicroHz: number;
}

interface ReadTerms {
  readonly openMicroHz: number;
  readonly nowMs: number;
}

interface NotedUse extends QuotaUsage {
  /** Whether the last assignment was active during all the time that the report covers. */
  readonly isCovered: boolean;
}

interface SettledUse {
  readonly allowedHits: number;
  readonly clockMs: number;
  readonly isCredited: boolean;
}
