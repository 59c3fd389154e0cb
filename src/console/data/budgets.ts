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

/** How much of a capacity is used, in parts of it. */
export interface UsedParts {
  readonly spent: number;
  readonly reserved: number;
  readonly total: number;
}

/** What is spent and reserved of a capacity, in parts of it; 0 without one. */
export function usedParts({
  spent,
  reserved,
  capacity,
}: Pick<BudgetSums, "spent" | "reserved" | "capacity">): UsedParts {
  const part = (amount: bigint): number =>
    capacity === 0n ? 0 : Number(amount) / Number(capacity);
  return { spent: part(spent), reserved: part(reserved), total: part(spent + reserved) };
}

/** How something does, and the word for it. */
interface Judgement {
  readonly tone: "good" | "notice" | "warn" | "bad";
  readonly word: string;
}

/** How the accounts of a budget do together. */
export function judgeBudget({ sums, isDryRun }: Budget): Judgement {
  const { overCount = 0n, warnedCount = 0n, projectedOverCount = 0n } = sums ?? {};
  if (overCount > 0n) return { tone: isDryRun ? "warn" : "bad", word: `${overCount} exhausted` };
  if (warnedCount > 0n) return { tone: "warn", word: `${warnedCount} near the end` };
  if (projectedOverCount > 0n) {
    return { tone: "notice", word: `${projectedOverCount} will be exhausted` };
  }
  return { tone: "good", word: isDryRun ? "dry run" : "in budget" };
}

/** How one account does. */
export function judgeAccount(
  { spent, reserved, capacity, usedRatio, exhaustedAt }: BudgetAccount,
  { warnAt = Number.POSITIVE_INFINITY }: Pick<Budget, "warnAt">,
): Judgement {
  if (spent + reserved >= capacity) return { tone: "bad", word: "exhausted" };
  if (usedRatio >= warnAt) return { tone: "warn", word: "near the end" };
  if (exhaustedAt !== undefined) return { tone: "notice", word: "will be exhausted" };
  return { tone: "good", word: "in budget" };
}

/** What an account may spend, in words: `500.00 USD a month in Europe/Berlin`. */
export function formatTerms(budget: Budget): string {
  const { amount, period, timeZone, drainPeriod } = budget;
  const amountText = formatAmount(amount, budget);
  return period === ""
    ? `${amountText} in ${formatProtoDuration(drainPeriod)}`
    : `${amountText} a ${period} in ${showText(timeZone)}`;
}

/** A projected amount, and how much of the capacity it is; a dash without a window. */
export function formatProjected(
  { projected, capacity }: Pick<BudgetSums, "projected" | "capacity">,
  budget: Budget,
): string {
  if (projected === undefined) return "-";
  const ratio = capacity === 0n ? "" : `, ${formatPercent(Number(projected) / Number(capacity))}`;
  return `${formatEstimate(projected, budget)}${ratio}`;
}

/** When an account is exhausted at the rate so far, to the day; empty: not in this window. */
export function formatExhausted({ exhaustedAt }: Pick<BudgetAccount, "exhaustedAt">): string {
  return exhaustedAt === undefined ? "" : formatTime(timestampMs(exhaustedAt)).slice(0, 10);
}

/** The values of an account, as one line; a dash for the only one of its budget. */
export function formatAccount(account: AccountSelector | undefined): string {
  const values = account?.values ?? [];
  if (values.length === 0) return "-";
  return values.map((value) => (value === "" ? "(none)" : showText(value))).join(", ");
}

/** The page of an account. Values may be empty, and the parts of a path may not. */
export function accountRoute(account: AccountSelector | undefined): string {
  const { budget = "", values = [] } = account ?? {};
  return formatRoute(["account", budget, ...values.map((value) => `=${value}`)]);
}

/** The account of such a route. */
export function accountOfRoute(path: readonly string[]): {
  readonly budget: string;
  readonly values: string[];
} {
  const [, budget = "", ...values] = path;
  return { budget, values: values.map((value) => value.replace(/^=/, "")) };
}

/** A day in UTC, so many days before another one: `2026-11-27`. */
export function dayBefore(nowMs: number, days: number): string {
  return formatTime(nowMs - days * 86_400_000).slice(0, 10);
}
