import { many } from "../core/base/many.js";
import { ceilMulDiv } from "../core/base/safe-integer-math.js";
import { amountMax } from "../core/budgets/account.js";
import { decimalText } from "../core/budgets/amount-text.js";
import type { PriceTable } from "../core/budgets/price.js";
import { amountWords } from "../policy/budgets/amount.js";
import type { BudgetPolicy } from "../policy/budgets/budget-policy.js";
import { periodWords } from "../policy/diff/limit-words.js";

/** Proposed amount for a budget. */
export interface BudgetProposal {
  readonly budget: string;
  /** The amount as a policy has it: `620 USD`. */
  readonly amount: string;
  /** The amount that the policy has now; undefined for a budget that it does not have. */
  readonly was: string | undefined;
  /** The whole budget as it would be written, if the policy does not have it. */
  readonly line: string | undefined;
  readonly accountCount: number;
  readonly callCount: number;
  /** Number of accounts that exceed the proposed amount in their busiest period. */
  readonly overCount: number;
  /** The same count with the policy's current amount. */
  readonly overNowCount: number | undefined;
  /** One line, written as a comment next to the amount in the policy. */
  readonly why: string;
}

/** What a log shows of the calls that one budget charges. */
export interface ObservedBudget {
  readonly budget: BudgetPolicy;
  /** Whether the policy has this budget. */
  readonly isKnown: boolean;
  readonly callCount: number;
  /** Calls that do not report what the budget counts. */
  readonly silentCount: number;
  /** For each account without an override: what it spent in its busiest period. */
  readonly peaks: readonly number[];
  /** From the first call to the last one, in microseconds. */
  readonly spanUs: number;
}

/** Options for proposed budgets. */
export interface BudgetFitting {
  readonly prices: PriceTable | undefined;
  /** Part of the accounts that may be refused, 0 to 1. */
  readonly refusedCallerRatioMax: number;
  /** From 1; undefined: `defaultHeadroom`. */
  readonly headroom: number | undefined;
}

/** Fewer calls, or a shorter time, are not enough for a proposal. */
const callsMin = 100;
const spanUsMin = 3_600_000_000;

/** Months differ from each other by at least this factor. */
const defaultHeadroom = 1.25;

const hourUs = 3_600_000_000;
const dayUs = 24 * hourUs;

/** Nominal lengths of the calendar's units. */
const unitUs = {
  hour: hourUs,
  day: dayUs,
  week: 7 * dayUs,
  month: 30 * dayUs,
  year: 365 * dayUs,
} as const;

/** A proposal, or sentences about what was observed and how much more is needed. */
type ProposedBudget =
  | { readonly kind: "proposed"; readonly proposal: BudgetProposal }
  | { readonly kind: "notEnough"; readonly missing: readonly string[] };

/** Proposes an amount, or reports what is missing. */
export function proposeBudget(observed: ObservedBudget, fitting: BudgetFitting): ProposedBudget {
  const { budget, isKnown, callCount, silentCount, peaks, spanUs } = observed;
  const missing = [
    ...(callCount - silentCount < callsMin
      ? [`${many(callCount - silentCount, "call")} with a cost; at least ${callsMin} are needed`]
      : []),
    ...(spanUs < spanUsMin ? ["less than an hour of calls"] : []),
    ...(peaks.length === 0 ? ["no account without an override"] : []),
  ];
  if (missing.length > 0) return { kind: "notEnough", missing };
  const { prices, refusedCallerRatioMax, headroom = defaultHeadroom } = fitting;
  const sorted = peaks.toSorted((one, other) => one - other);
  const allowed = Math.floor(sorted.length * refusedCallerRatioMax);
  const peak = sorted[sorted.length - 1 - allowed] ?? 0;
  const periodUs =
    budget.period.kind === "drain" ? budget.period.periodUs : unitUs[budget.period.unit];
  const isShort = spanUs < periodUs;
  const whole = isShort ? ceilMulDiv(peak, periodUs, spanUs, amountMax) : peak;
  const perMille = Math.round(1_000 * headroom);
  const amount = roundedUp(ceilMulDiv(whole, perMille, 1_000, amountMax));
  const words = (count: number): string => amountWords(count, budget.unit, prices);
  const days = Math.max(1, Math.round(spanUs / dayUs));
  const subject = `${many(peaks.length, "account")} in ${many(days, "day")} of logs`;
  const stretched = isShort ? `, which is ${words(whole)} in a whole period` : "";
  const why =
    `${headroom} times the ${words(peak)} that ${allowed === 0 ? "the largest" : "all but"} ` +
    `${allowed === 0 ? "" : `${allowed} `}of ${subject} spent ${periodWords(budget.period)}` +
    stretched;
  const overCount = (most: number): number => peaks.filter((one) => one > most).length;
  const written = amountText(amount, budget, prices);
  const proposal: BudgetProposal = {
    budget: budget.name,
    amount: written,
    was: isKnown ? amountText(budget.amount, budget, prices) : undefined,
    line: isKnown ? undefined : budgetLine(budget, written),
    accountCount: peaks.length,
    callCount,
    overCount: overCount(amount),
    overNowCount: isKnown ? overCount(budget.amount) : undefined,
    why,
  };
  return { kind: "proposed", proposal };
}

/** Rounds up to two digits. */
function roundedUp(amount: number): number {
  const step = 10 ** Math.max(0, String(amount).length - 2);
  return Math.min(amountMax, Math.ceil(amount / step) * step);
}

function amountText(
  amount: number,
  { unit }: BudgetPolicy,
  prices: PriceTable | undefined,
): string {
  const { currency = "", decimals = 0 } = prices ?? {};
  const digits = decimalText(amount, { unit: unit.kind, currency, decimals });
  return `${digits} ${unit.kind === "money" ? currency : unit.kind}`;
}

function budgetLine({ name, services = [], per, period }: BudgetPolicy, amount: string): string {
  const parts = per.map((part) =>
    part.kind === "header" ? `{header: ${part.header}}` : part.kind,
  );
  const when = period.kind === "calendar" ? period.unit : `${period.periodUs / 1_000_000}s`;
  const fields = [
    `name: ${name}`,
    `services: [${services.join(", ")}]`,
    `per: [${parts.join(", ")}]`,
    `amount: ${amount}`,
    `period: ${when}`,
  ];
  return `- {${fields.join(", ")}}`;
}
