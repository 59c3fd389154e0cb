import { exactDifference, floorMulDiv } from "../base/safe-integer-math.js";
import { windowAt } from "../limits/window.js";
import { type AccountLaw, amountMax, type EntryResult, type ReservedEntry } from "./account.js";

/**
 * An account as stores keep it. Amounts are 0 to `amountMax`. Scripts of stores perform the same
 * steps in Lua as the functions here. Amounts change in place: a call that is settled changes its
 * accounts four times, and copies that live until the next call would cost the most.
 */
export interface Account {
  readonly kind: AccountLaw["kind"];
  /** Identifies the window of the amounts: the time of its first use in us, or later. Increases. */
  readonly windowId: number;
  spent: number;
  /** The sum of the open reservations of this window. */
  reserved: number;
  /** Estimates of this window whose holders were lost: released, and not settled. */
  lost: number;
  spentBefore: number;
  /** Identifies the previous window. 0 if the account was not used in it. */
  readonly beforeId: number;
  /** The window. 0 for other kinds. */
  readonly startUs: number;
  readonly endUs: number;
  /** The time up to which `spent` has drained, and the drained part of a unit in 1/`periodUs`. */
  readonly drainedUs: number;
  readonly remainder: number;
  /** In `periodUs`, `capacity` drains: the capacity at the last reservation. */
  readonly periodUs: number;
  readonly capacity: number;
}

/** The part of one account that one reservation holds. */
export interface Hold {
  readonly windowId: number;
  /** The estimate, or less if the account reached `amountMax`. */
  readonly held: number;
}

/** Maximum reported wait, in microseconds: about 35 years. */
export const retryUsMax = 2 ** 50;

/** Returns an unused account. */
export function openAccount(law: AccountLaw, nowUs: number): Account {
  const amounts = { spent: 0, reserved: 0, lost: 0, spentBefore: 0, beforeId: 0 };
  const times = { startUs: 0, endUs: 0, drainedUs: nowUs, remainder: 0, periodUs: 1, capacity: 0 };
  return inLaw({ kind: law.kind, windowId: nowUs, ...amounts, ...times }, law, nowUs);
}

/**
 * Returns an account at a time, under the caller's law: in the window of that time, or drained.
 *
 * - If the clock has stepped back into the previous window, the account stays in its own window, so
 *   that nothing that was spent is forgotten when that window starts again.
 * - If the law itself has changed, amounts stay, and count in the new window.
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

/** Returns an account under another law. It forgets the previous window. */
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
 * Returns an account after `elapsed * capacity / periodUs` of `spent` has drained. The fraction of
 * a unit is kept, so it does not matter how often an account is read. If the clock has stepped
 * back, nothing drains.
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

/** Returns an account with the rate at which `spent` drains from now on. */
export function withSpeed(account: Account, { law, capacity }: ReservedEntry): Account {
  if (law.kind !== "drain") return account;
  const { periodUs } = law;
  const remainder = periodUs === account.periodUs ? account.remainder : 0;
  return { ...account, periodUs, capacity, remainder };
}

/**
 * Returns what a reservation finds. It is over if `spent + reserved + estimate > capacity`. The sum
 * could exceed 2^53, so the comparison is rearranged.
 *
 * @param account as returned by `accountAt`
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
  // The minimum wait with wait * capacity + remainder >= over * periodUs.
  const whole = floorMulDiv(over, periodUs, capacity, retryUsMax);
  if (whole >= retryUsMax) return retryUsMax;
  const rest = exactDifference(over, periodUs, whole, capacity) - remainder;
  return Math.max(0, whole + Math.ceil(rest / capacity));
}

/** Reserves an estimate, up to `amountMax` for all reservations. @returns the amount it holds */
export function reserve(account: Account, estimate: number): number {
  const held = Math.min(estimate, amountMax - account.reserved);
  account.reserved += held;
  return held;
}

/** Releases what a reservation holds. */
export function release(account: Account, { windowId, held }: Hold): void {
  if (windowId === account.windowId) account.reserved = Math.max(0, account.reserved - held);
}

/**
 * Spends an amount, or corrects what was spent, in the window of the reservation. Has no effect if
 * that window ended more than one window ago.
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

/** Records an estimate that was lost and released; with -1, that it is settled after all. */
export function lose(account: Account, { windowId, held }: Hold, sign: 1 | -1): void {
  if (windowId === account.windowId) account.lost = sumOf(account.lost, sign * held);
}

/**
 * Returns until when to keep an account, in milliseconds since 1970: until the window after its own
 * ends, or until it has drained, and as long as calls may be in flight. Returns a later time than
 * necessary, so that it seldom changes.
 *
 * @param expiresMs the previous result; 0 for a new account
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

/** Maximum length of a window: a year of 366 days, in microseconds. */
export const windowUsMax = 366 * 86_400_000_000;

/** Minimum time to keep an account with an open reservation: longer than any call. */
export const callKeptMs = 25 * 3_600_000;

/** An account is kept for longer than necessary: by this fraction, and by `accountKeptMs`. */
export const accountKeptRatio = 0.25;

/** An hour, in milliseconds. */
export const accountKeptMs = 3_600_000;
