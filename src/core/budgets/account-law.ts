import { exactDifference, floorMulDiv } from "../base/safe-integer-math.js";
import { windowAt } from "../limits/window.js";
import { type AccountLaw, amountMax, type EntryResult, type ReservedEntry } from "./account.js";

/**
 * An account as stores keep it. Amounts are 0 to `amountMax`. Scripts of stores do the same in Lua
 * as the functions here, step by step. Amounts change in place: a call that is settled changes its
 * accounts four times, and copies that live until the next call are what costs most.
 */
export interface Account {
  readonly kind: AccountLaw["kind"];
  /** Names the window that the amounts are of: when it was entered, in us, or later. It grows. */
  readonly windowId: number;
  spent: number;
  /** What open reservations of this window hold. */
  reserved: number;
  /** Estimates of this window that lost holders left, that were released and are not settled. */
  lost: number;
  spentBefore: number;
  /** Names the window before; 0 where nobody has used that one. */
  readonly beforeId: number;
  /** Of the window; 0 for other laws. */
  readonly startUs: number;
  readonly endUs: number;
  /** Until when `spent` has drained, and the part of the next one, in 1/`periodUs`. */
  readonly drainedUs: number;
  readonly remainder: number;
  /** What drains in `periodUs`: the capacity at the last reservation. */
  readonly periodUs: number;
  readonly capacity: number;
}

/** What one reservation holds in one account. */
export interface Hold {
  readonly windowId: number;
  /** The estimate, as far as the account could count it. */
  readonly held: number;
}

/** A wait counts as at most this, about 35 years. */
export const retryUsMax = 2 ** 50;

/** An account that nobody has used yet. */
export function openAccount(law: AccountLaw, nowUs: number): Account {
  const amounts = { spent: 0, reserved: 0, lost: 0, spentBefore: 0, beforeId: 0 };
  const times = { startUs: 0, endUs: 0, drainedUs: nowUs, remainder: 0, periodUs: 1, capacity: 0 };
  return inLaw({ kind: law.kind, windowId: nowUs, ...amounts, ...times }, law, nowUs);
}

/**
 * An account at a time, under the law of who asks: in the window of that time, or drained.
 *
 * - A clock that has stepped back into the window before leaves the account where it is, so nothing
 *   that was spent is forgotten when time comes again.
 * - Where the law itself has changed, amounts stay, and count in the new window.
 */
export function accountAt(account: Account, law: AccountLaw, nowUs: number): Account {
  const { kind } = law;
  if (kind !== account.kind) return inLaw({ ...drainedAt(account, nowUs), kind }, law, nowUs);
  if (kind === "drain") return drainedAt(account, nowUs);
  if (law.kind === "inFlight") return account;
  const window = windowAt(law.windows, nowUs);
  const { startUs, endUs, windowId, spent } = account;
  if (window.endUs > endUs && nowUs >= endUs) {
    const follows = window.startUs <= endUs;
    return {
      ...account,
      ...window,
      windowId: Math.max(nowUs, windowId + 1),
      spent: 0,
      reserved: 0,
      lost: 0,
      spentBefore: follows ? spent : 0,
      beforeId: follows ? windowId : 0,
    };
  }
  const isStepBack = nowUs < startUs && startUs <= window.endUs;
  return window.endUs === endUs || isStepBack ? account : { ...account, ...window };
}

/** An account whose law becomes another one: it forgets the window before. */
function inLaw(account: Account, law: AccountLaw, nowUs: number): Account {
  const other = { ...account, spentBefore: 0, beforeId: 0 };
  switch (law.kind) {
    case "window":
      return { ...other, ...windowAt(law.windows, nowUs) };
    case "drain":
      return { ...other, drainedUs: nowUs, remainder: 0, periodUs: 1, capacity: 0 };
    case "inFlight":
      return other;
  }
}

/**
 * What is left of `spent` after `elapsed * capacity / periodUs` of it has drained. The part of a
 * unit is kept, so it does not matter how often an account is asked. A clock that has stepped back
 * drains nothing.
 */
export function drainedAt(account: Account, nowUs: number): Account {
  const { kind, spent, drainedUs, remainder, periodUs, capacity } = account;
  if (kind !== "drain" || nowUs === drainedUs) return account;
  if (nowUs < drainedUs) return { ...account, drainedUs: nowUs };
  const elapsed = nowUs - drainedUs;
  let drained = floorMulDiv(elapsed, capacity, periodUs, spent);
  if (drained >= spent) return { ...account, spent: 0, drainedUs: nowUs, remainder: 0 };
  let rest = exactDifference(elapsed, capacity, drained, periodUs) + remainder;
  if (rest >= periodUs) {
    drained += 1;
    rest -= periodUs;
  }
  const left = spent - drained;
  return { ...account, spent: left, drainedUs: nowUs, remainder: left === 0 ? 0 : rest };
}

/** The speed at which what is spent drains from now on. */
export function withSpeed(account: Account, { law, capacity }: ReservedEntry): Account {
  if (law.kind !== "drain") return account;
  const { periodUs } = law;
  const remainder = periodUs === account.periodUs ? account.remainder : 0;
  return { ...account, periodUs, capacity, remainder };
}

/**
 * What a reservation finds. It is over where `spent + reserved + estimate > capacity`; the sum
 * could pass 2^53, so it is asked the other way around.
 *
 * @param account as `accountAt` has made it
 */
export function entryResult(account: Account, entry: ReservedEntry, nowUs: number): EntryResult {
  const { spent, reserved } = account;
  const { estimate, capacity } = entry;
  const over = estimate - (capacity - spent - reserved);
  if (over <= 0) return { spent, reserved, isOver: false };
  const retryUs = retryUsOf(account, entry, { over, nowUs });
  return { spent, reserved, isOver: true, ...(retryUs === undefined ? {} : { retryUs }) };
}

function retryUsOf(
  account: Account,
  { law, estimate, capacity }: ReservedEntry,
  { over, nowUs }: { readonly over: number; readonly nowUs: number },
): number | undefined {
  if (law.kind === "inFlight" || estimate > capacity) return undefined;
  if (law.kind === "window") return Math.min(account.endUs - nowUs, retryUsMax);
  if (over > account.spent || capacity === 0) return undefined;
  const { periodUs } = law;
  const remainder = periodUs === account.periodUs ? account.remainder : 0;
  // The least wait with wait * capacity + remainder >= over * periodUs.
  const whole = floorMulDiv(over, periodUs, capacity, retryUsMax);
  if (whole >= retryUsMax) return retryUsMax;
  const rest = exactDifference(over, periodUs, whole, capacity) - remainder;
  return Math.max(0, whole + Math.ceil(rest / capacity));
}

/** Reserves an estimate, as far as the account can count; returns what it holds. */
export function reserve(account: Account, estimate: number): number {
  const held = Math.min(estimate, amountMax - account.reserved);
  account.reserved += held;
  return held;
}

/** Gives back what a reservation holds. */
export function release(account: Account, { windowId, held }: Hold): void {
  if (windowId === account.windowId) account.reserved = Math.max(0, account.reserved - held);
}

/**
 * Spends, or corrects what was spent, in the window that a reservation was made in; in none where
 * that is over for longer than one window.
 *
 * @param amount negative for a correction
 */
export function spend(account: Account, windowId: number, amount: number): void {
  if (account.kind === "inFlight") return;
  if (windowId === account.windowId) account.spent = sumOf(account.spent, amount);
  else if (windowId === account.beforeId) account.spentBefore = sumOf(account.spentBefore, amount);
}

function sumOf(sum: number, amount: number): number {
  return Math.min(Math.max(sum + amount, 0), amountMax);
}

/** Notes an estimate that was lost and released; negative: that is settled after all. */
export function lose(account: Account, { windowId, held }: Hold, sign: 1 | -1): void {
  if (windowId === account.windowId) account.lost = sumOf(account.lost, sign * held);
}

/**
 * Until when an account has to be kept, in milliseconds since 1970: until its window has been the
 * one before, or until it has drained, and as long as calls may be in flight. Later than it must
 * be, so that it seldom changes.
 *
 * @param expiresMs what was answered last; 0 for a new account
 */
export function keptUntilMs(account: Account, nowUs: number, expiresMs: number): number {
  const { kind, startUs, endUs, periodUs, capacity } = account;
  const nowMs = Math.floor(nowUs / 1_000);
  let spanUs = 0;
  if (kind === "window") spanUs = endUs + Math.min(endUs - startUs, windowUsMax) - nowUs;
  if (kind === "drain") {
    // The same operations as in Lua, so both round alike.
    spanUs = Math.min((account.spent / Math.max(1, capacity)) * periodUs, retryUsMax);
  }
  const spanMs = Math.max(spanUs / 1_000, account.reserved > 0 ? callKeptMs : 0);
  if (nowMs + spanMs < expiresMs) return expiresMs;
  return Math.floor(nowMs + spanMs * (1 + accountKeptRatio)) + accountKeptMs;
}

/** The longest window: a year of 366 days, in microseconds. */
export const windowUsMax = 366 * 86_400_000_000;

/** How long an account is kept at least that a call holds something in: longer than any call. */
export const callKeptMs = 25 * 3_600_000;

/** How much longer than it must be an account is kept: this part, and `accountKeptMs`. */
export const accountKeptRatio = 0.25;

/** An hour, in milliseconds. */
export const accountKeptMs = 3_600_000;
