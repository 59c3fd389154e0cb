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

/** The longest time that a report may tell of. */
const quotaElapsedMsMax = 3_600_000;

/** What a report may tell of beyond its assignment: rounding, and clocks that differ. */
const slackRatio = 1.1;
const slackHits = 2;

/** Reports may be late: what a rate brings in that time may be reported later than it was due. */
const lateMsMax = 2 * quotaReportMs + confirmMs;

/**
 * What is taken of Envoys that nothing bounded, or another replica did: of each identity what its
 * part of the limit brings between two reports and on their way, and a few hits; once in a minute.
 */
const openSeconds = (quotaReportMs + confirmMs) / 1_000;
const openHitsLeast = 10;
const openPaidMs = 60_000;

/** A report's own clock is taken to be so much faster: it never falls behind for ever. */
const clockRatio = 1.02;

/** A report that tells of less time says nothing of how fast hits come. */
const demandMsMin = quotaReportMs / 10;

/** Reports of fewer hits than this count less: by this part at least. */
const rareHits = 10;
const rareWeight = 0.2;

/** So do reports that differ from what was expected by no more standard deviations of chance. */
const chanceDeviations = 2;

/** Who asks less often than this, once in two minutes, waits for nothing. */
const rareMicroHz = microHzPerHz / 120;

/** Demand that differs by no more than this part changes nothing. */
const steadyRatio = 0.1;

/**
 * What a report said: as may be, more than was assigned, more than is taken of who has no
 * assignment, or of a time that cannot be.
 */
export type UsageVerdict = "plausible" | "too_much" | "unassigned" | "elapsed";

/** What came of a report. */
interface MeterReading {
  readonly verdict: UsageVerdict;
  /** Until when it tells what was so. */
  readonly clockMs: number;
  /** Whether it shows what its holder was told last. */
  readonly isTaken: boolean;
  /** Whether its holder wants something else than it did. */
  readonly isOther: boolean;
}

/**
 * Reads what holders report: what they used goes to the account, what they want to their columns.
 *
 * A report that was late tells nothing of the time on its way. So reports have a clock: it is set
 * when a holder joins, and each report takes it on by the time that it tells of, until now at most;
 * what a report tells is what was so until then. What was estimated for later is left for the next.
 */
export class QuotaMeter {
  readonly #holders: QuotaHolders;
  readonly #account: QuotaAccount;

  constructor(holders: QuotaHolders, account: QuotaAccount) {
    this.#holders = holders;
    this.#account = account;
  }

  /**
   * Takes in a report. What cannot be is cut to what can, and credits nothing.
   *
   * @param terms `openMicroHz` is its party's part of the limit
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
    // A late report may have left before what was told last came: the next one tells of both.
    if (clockMs >= (changedMs[holder] ?? 0)) this.#settleTop(holder);
    wasOpen[holder] = this.#isOpen(holder) ? 1 : Math.max(0, (wasOpen[holder] ?? 0) - 1);
    const isCut = allowedHits < usage.allowedHits;
    const cut = isOpen ? "unassigned" : "too_much";
    const verdict = !isTimed ? "elapsed" : isCut ? cut : "plausible";
    return { verdict, clockMs, isTaken, isOther };
  }

  /**
   * It was told something else: what it is taken to use from now on is what it asks for, as far as
   * that lets it. What it used before would be charged for the next five seconds, and be wrong.
   */
  expect(holder: QuotaHolder, nowMs: number): void {
    const { demand, rate, assigned } = this.#holders;
    const most = assigned[holder] === assignedRate ? (rate[holder] ?? 0) : 0;
    this.estimate(holder, Math.min(demand[holder] ?? 0, most), nowMs);
  }

  /** Another estimate of what a holder uses, until its next report. */
  estimate(holder: QuotaHolder, microHz: number, nowMs: number): void {
    const { aheadHits, estimate, reportedMs } = this.#holders;
    const before = estimate[holder] ?? 0;
    if (before === microHz) return;
    // From the last report on it is as if the new one had held, but for what was charged already.
    const seconds = (nowMs - (reportedMs[holder] ?? nowMs)) / 1_000;
    aheadHits[holder] =
      (aheadHits[holder] ?? 0) + ((before - microHz) * Math.max(0, seconds)) / microHzPerHz;
    this.#account.estimate(microHz - before, nowMs);
    estimate[holder] = microHz;
  }

  /**
   * How many of the hits that it says it admitted are taken: what it was assigned since its last
   * report, by our clock, whatever time it tells of; and more only where nothing was assigned.
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
    // What it used before it was told anything here is not paid for with what it was told here.
    const isMixed = isOpen && !this.#isOpen(holder);
    unreported[holder] = isMixed ? allowance : allowance - own;
    if (own === hits || party === undefined || !isOpen) return own;
    return own + takeOpen(party, hits - own, { openMicroHz, nowMs });
  }

  #isOpen(holder: QuotaHolder): boolean {
    const { assigned } = this.#holders;
    return assigned[holder] === assignedNothing || assigned[holder] === assignedAllow;
  }

  /** What it may have in force still, and may report late, is all that is left of what it had. */
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
   * Whether little is left of single hits. Who is denied has none: also where the report that told
   * of their use is lost, and without that it would wait for ever. But who was denied before they
   * came has them still, and would lose them.
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
    // A single hit is charged when it is reported; there is no rate to estimate.
    const isEstimated = assigned[holder] !== assignedTicket && assigned[holder] !== assignedDeny;
    const next = isEstimated ? Math.min(usedMicroHz, most) : 0;
    this.#account.estimate(next - (estimate[holder] ?? 0), nowMs);
    estimate[holder] = next;
    const isSteady = Math.abs(asked - before) <= steadyRatio * before;
    return !isSteady || wasHungry !== isHungry[holder] || isSpent[holder] === 1;
  }
}

/**
 * How much a report says of what its holder wants: a few hits more or less are chance. Taken at
 * their word, shares would be taken back and given out after each report, and lie idle between.
 *
 * Example: 43 hits where 36 were expected count by a fifth, 50 count in full.
 */
function weightOf(askedHits: number, expectedHits: number): number {
  const chanceHits = chanceDeviations * Math.sqrt(Math.max(1, expectedHits));
  if (Math.abs(askedHits - expectedHits) <= chanceHits) return rareWeight;
  return Math.min(1, Math.max(rareWeight, Math.max(askedHits, expectedHits) / rareHits));
}

function microHzOf(hits: number, elapsedMs: number): number {
  return (hits * 1_000 * microHzPerHz) / elapsedMs;
}

/** What hits are left of which nobody can say what bounded them. @returns how many are taken */
function takeOpen(party: QuotaParty, hits: number, { openMicroHz, nowMs }: ReadTerms): number {
  const most = Math.ceil((openMicroHz / microHzPerHz) * openSeconds * slackRatio) + openHitsLeast;
  const paid = (most * Math.max(0, nowMs - party.openMs)) / openPaidMs;
  const used = Math.max(0, Math.min(party.openHits, most) - paid);
  const taken = Math.max(0, Math.min(hits, Math.floor(most - used)));
  party.openHits = used + taken;
  party.openMs = nowMs;
  return taken;
}

/** Whether a party that has gone may be forgotten: when it is back it has nothing more. */
export function isOpenPaid({ openHits, openMs }: QuotaParty, nowMs: number): boolean {
  return openHits === 0 || nowMs - openMs >= openPaidMs;
}

interface ClaimedUse {
  readonly hits: number;
  /** Whether something else than what it was told here may have bounded it. */
  readonly isOpen: boolean;
  readonly openMicroHz: number;
}

interface ReadTerms {
  readonly openMicroHz: number;
  readonly nowMs: number;
}

interface NotedUse extends QuotaUsage {
  /** Whether what was told last was active all the time that it covers. */
  readonly isCovered: boolean;
}

interface SettledUse {
  readonly allowedHits: number;
  readonly clockMs: number;
  readonly isCredited: boolean;
}
