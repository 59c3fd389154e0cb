import { timestampMs } from "@bufbuild/protobuf/wkt";
import { formatAmount, formatEstimate } from "../../core/budgets/amount-text.js";
import type {
  AccountSelector,
  Budget,
  BudgetAccount,
  BudgetSums,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { formatPercent, formatProtoDuration, formatTime } from "./format.js";
import { formatRoute } from "./route.js";
import { showText } from "./shown-text.js";

/** Used parts of a capacity. */
export interface UsedParts {
  readonly spent: number;
  readonly reserved: number;
  readonly total: number;
}

/** Returns the spent and reserved parts of a capacity; 0 without one. */
export function usedParts({
  spent,
  reserved,
  capacity,
}: Pick<BudgetSums, "spent" | "reserved" | "capacity">): UsedParts {
  const part = (amount: bigint): number =>
    capacity === 0n ? 0 : Number(amount) / Number(capacity);
  return { spent: part(spent), reserved: part(reserved), total: part(spent + reserved) };
}

/** State of a budget or account, in a tone and a word. */
interface Judgement {
  readonly tone: "good" | "notice" | "warn" | "bad";
  readonly word: string;
}

/** Judges the accounts of a budget together. */
export function judgeBudget({ sums, isDryRun }: Budget): Judgement {
  const { overCount = 0n, warnedCount = 0n, projectedOverCount = 0n } = sums ?? {};
  if (overCount > 0n) return { tone: isDryRun ? "warn" : "bad", word: `${overCount} exhausted` };
  if (warnedCount > 0n) return { tone: "warn", word: `${warnedCount} near the end` };
  if (projectedOverCount > 0n) {
    return { tone: "notice", word: `${projectedOverCount} will be exhausted` };
  }
  return { tone: "good", word: isDryRun ? "dry run" : "in budget" };
}

/** Judges one account. */
export function judgeAccount(
  { spent, reserved, capacity, usedRatio, exhaustedAt }: BudgetAccount,
  { warnAt = Number.POSITIVE_INFINITY }: Pick<Budget, "warnAt">,
): Judgement {
  if (spent + reserved >= capacity) return { tone: "bad", word: "exhausted" };
  if (usedRatio >= warnAt) return { tone: "warn", word: "near the end" };
  if (exhaustedAt !== undefined) return { tone: "notice", word: "will be exhausted" };
  return { tone: "good", word: "in budget" };
}

/** Returns what an account may spend, in words: `500.00 USD a month in Europe/Berlin`. */
export function formatTerms(budget: Budget): string {
  const { amount, period, timeZone, drainPeriod } = budget;
  const amountText = formatAmount(amount, budget);
  return period === ""
    ? `${amountText} in ${formatProtoDuration(drainPeriod)}`
    : `${amountText} a ${period} in ${showText(timeZone)}`;
}

/** Returns a projected amount, and its part of the capacity; a dash without a window. */
export function formatProjected(
  { projected, capacity }: Pick<BudgetSums, "projected" | "capacity">,
  budget: Budget,
): string {
  if (projected === undefined) return "-";
  const ratio = capacity === 0n ? "" : `, ${formatPercent(Number(projected) / Number(capacity))}`;
  return `${formatEstimate(projected, budget)}${ratio}`;
}

/** Returns the day on which an account will be exhausted; empty: not in this window. */
export function formatExhausted({ exhaustedAt }: Pick<BudgetAccount, "exhaustedAt">): string {
  return exhaustedAt === undefined ? "" : formatTime(timestampMs(exhaustedAt)).slice(0, 10);
}

/** Returns an account's values in one line; a dash for the only account of a budget. */
export function formatAccount(account: AccountSelector | undefined): string {
  const values = account?.values ?? [];
  if (values.length === 0) return "-";
  return values.map((value) => (value === "" ? "(none)" : showText(value))).join(", ");
}

/** Returns the page of an account. `=` is added, because a path's parts must not be empty. */
export function accountRoute(account: AccountSelector | undefined): string {
  const { budget = "", values = [] } = account ?? {};
  return formatRoute(["account", budget, ...values.map((value) => `=${value}`)]);
}

/** Returns the account of such a route. */
export function accountOfRoute(path: readonly string[]): {
  readonly budget: string;
  readonly values: string[];
} {
  const [, budget = "", ...values] = path;
  return { budget, values: values.map((value) => value.replace(/^=/, "")) };
}

/** Returns the day in UTC that is `days` before another one: `2026-11-27`. */
export function dayBefore(nowMs: number, days: number): string {
  return formatTime(nowMs - days * 86_400_000).slice(0, 10);
}
