import type { Window } from "../limits/window.js";
import { amountMax } from "./account.js";

/** The projected state of an account at the end of its window. */
export interface Projection {
  /** 0 to `amountMax`. */
  readonly amount: number;
  /** When the capacity is spent, in microseconds since 1970. Undefined: not in this window. */
  readonly exhaustedUs: number | undefined;
}

/** Minimum fraction of a window whose rate is projected: the first calls alone mean little. */
const basisRatioMin = 0.1;

/**
 * Projects the end of a window linearly: the rest of the window at the mean rate since its start.
 * In the first tenth, the rate is the mean over the last tenth of a window up to now. Usage in the
 * previous window is assumed to have been even.
 *
 * ```
 * basis = max(now - start, length / 10)
 * rate = (spent + spentBefore * (basis - (now - start)) / length) / basis
 * projected = spent + rate * (end - now)
 * ```
 *
 * Example: 300 spent on day 10 of 30 gives 900 at the end. 20 on day 1, after a month with 900,
 * gives 20 + (20 + 900 * 2/30) / 3 * 29 = 793.
 */
export function projectWindow(
  { spent, spentBefore, capacity }: ProjectedAccount,
  { startUs, endUs }: Window,
  nowUs: number,
): Projection {
  const lengthUs = endUs - startUs;
  const elapsedUs = Math.min(Math.max(nowUs - startUs, 0), lengthUs);
  const basisUs = Math.max(elapsedUs, lengthUs * basisRatioMin);
  const basisSpent = spent + (spentBefore * (basisUs - elapsedUs)) / lengthUs;
  const rate = basisSpent / basisUs;
  const amount = Math.min(Math.round(spent + rate * (lengthUs - elapsedUs)), amountMax);
  const untilUs = Math.ceil(Math.max(capacity - spent, 0) / rate);
  const isInWindow = rate > 0 && elapsedUs + untilUs < lengthUs;
  return { amount, exhaustedUs: isInWindow ? startUs + elapsedUs + untilUs : undefined };
}

interface ProjectedAccount {
  readonly spent: number;
  /** Spent in the previous window. */
  readonly spentBefore: number;
  readonly capacity: number;
}
