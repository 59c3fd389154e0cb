import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { formatAmount, formatEstimate } from "../../core/budgets/amount-text.js";
import type {
  AccountSelector,
  Budget,
  BudgetAccount,
  BudgetSums,
  GetBudgetAccountResponse,
  ListBudgetAccountsResponse,
  ListBudgetsResponse,
  ListTopUpsResponse,
  ListUsageResponse,
  TopUp,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { drawSplitBar } from "../terminal/bar.js";
import type { Drawing } from "../terminal/drawing.js";
import { countText, percentText, periodText, safeText, timeText } from "../terminal/quantity.js";
import { type Column, drawTable } from "../terminal/text-table.js";

/** Number of columns of a bar. */
const barColumns = 10;

/** Flexible column of an amount, with its minimum width if a line is too long. */
const amountColumn = { align: "right", isFlexible: true, columnsMin: 10 } as const;

/** Draws budgets as a table, one row each. */
export function drawBudgets(
  { budgets }: ListBudgetsResponse,
  { style, columnsMax }: Drawing,
): readonly string[] {
  if (budgets.length === 0) return ["The active policy has no budgets."];
  const rows = budgets.map((budget) => {
    const { name, sums } = budget;
    if (sums === undefined) return [safeText(name), "-", "-", "-", "-", "-"];
    return [
      safeText(name),
      sumsBar(sums),
      formatAmount(sums.spent, budget),
      formatAmount(sums.capacity, budget),
      sums.projected === undefined ? "-" : formatEstimate(sums.projected, budget),
      accountsText(sums),
    ];
  });
  return drawTable(
    [
      { title: "budget", isFlexible: true, paint: style.bold },
      { title: "used" },
      { title: "spent", ...amountColumn },
      { title: "capacity", ...amountColumn },
      { title: "projected", ...amountColumn },
      { title: "accounts", isFlexible: true, columnsMin: 8 },
    ],
    rows,
    columnsMax,
  );
}

/** Draws one budget and its accounts as text. */
export function drawBudget(
  budget: Budget,
  { accounts }: Pick<ListBudgetAccountsResponse, "accounts">,
  drawing: Drawing,
): readonly string[] {
  const { sums } = budget;
  const rows = [...budgetRows(budget), ...(sums === undefined ? [] : sumRows(budget, sums))];
  return [
    ...drawFacts(safeText(budget.name), rows, drawing),
    "",
    ...drawAccounts(budget, accounts, drawing),
  ];
}

function budgetRows(budget: Budget): readonly (readonly [string, string])[] {
  const { amount, per, services, models, over, warnAt, isDryRun, windowStart, windowEnd } = budget;
  return [
    ["amount", `${formatAmount(amount, budget)} ${spanText(budget)}`],
    ["per", per.length === 0 ? "one account for all" : safeText(per.join(", "))],
    ["services", services.length === 0 ? "all with usage" : safeText(services.join(", "))],
    ...(models.length === 0 ? [] : [["models", safeText(models.join(", "))] as const]),
    ...(windowEnd === undefined
      ? []
      : [["window", `${timeText(windowStart)} to ${timeText(windowEnd)}`] as const]),
    ["over", isDryRun ? `${over}, dry run` : over],
    ["warns at", warnAt === undefined ? "never" : percentText(warnAt)],
    ["without the store", budget.onStoreFailure],
    ["lost calls", budget.whenLost === "charge" ? "are charged" : "are released"],
  ];
}

function spanText({ period, timeZone, drainPeriod }: Budget): string {
  if (period === "") return `drains in ${periodText(drainPeriod)}`;
  return `a ${period} in ${safeText(timeZone)}`;
}

function sumRows(budget: Budget, sums: BudgetSums): readonly (readonly [string, string])[] {
  const { spent, reserved, spentBefore, lost, capacity, projected, usedRatioMax } = sums;
  return [
    ["accounts", accountsText(sums)],
    ["used", sumsBar(sums)],
    ["fullest account", percentText(usedRatioMax)],
    ["spent", `${formatAmount(spent, budget)} of ${formatAmount(capacity, budget)}`],
    ["reserved", formatAmount(reserved, budget)],
    ...(projected === undefined
      ? []
      : [["projected", `${formatEstimate(projected, budget)} at the end`] as const]),
    ...(budget.period === ""
      ? []
      : [["window before", formatAmount(spentBefore, budget)] as const]),
    ["lost", formatAmount(lost, budget)],
  ];
}

function accountsText({ accountCount, overCount, warnedCount, projectedOverCount }: BudgetSums) {
  return [
    countText(accountCount),
    ...(overCount === 0n ? [] : [`${countText(overCount)} over`]),
    ...(warnedCount === 0n ? [] : [`${countText(warnedCount)} warned`]),
    ...(projectedOverCount === 0n ? [] : [`${countText(projectedOverCount)} will be over`]),
  ].join(", ");
}

function drawAccounts(
  budget: Budget,
  accounts: readonly BudgetAccount[],
  { style, columnsMax }: Drawing,
): readonly string[] {
  if (accounts.length === 0) return ["No account has been used yet."];
  const rows = accounts.map((account) => {
    const { spent, capacity, projected } = account;
    return [
      accountText(account.account),
      accountBar(account),
      formatAmount(spent, budget),
      formatAmount(capacity, budget),
      projected === undefined ? "-" : formatEstimate(projected, budget),
      account.exhaustedAt === undefined ? "" : dayText(account.exhaustedAt),
    ];
  });
  return drawTable(
    [
      { title: "account", isFlexible: true, paint: style.bold },
      { title: "used" },
      { title: "spent", ...amountColumn },
      { title: "capacity", ...amountColumn },
      { title: "projected", ...amountColumn },
      { title: "until", isFlexible: true },
    ],
    rows,
    columnsMax,
  );
}

/** Draws one account and its top-ups as text. */
export function drawAccount(
  { budget, account, topUps }: Pick<GetBudgetAccountResponse, "budget" | "account" | "topUps">,
  drawing: Drawing,
): readonly string[] {
  if (budget === undefined || account === undefined) return ["There is no such account."];
  const { capacity, toppedUp, spent, reserved, spentBefore, lost, projected } = account;
  const { exhaustedAt } = account;
  const rows: readonly (readonly [string, string])[] = [
    ["account", accountText(account.account)],
    ["used", accountBar(account)],
    ["spent", formatAmount(spent, budget)],
    ["reserved", formatAmount(reserved, budget)],
    ["capacity", formatAmount(capacity, budget)],
    ["topped up", formatAmount(toppedUp, budget)],
    ...(projected === undefined
      ? []
      : [["projected", `${formatEstimate(projected, budget)} at the end`] as const]),
    ...(exhaustedAt === undefined ? [] : [["exhausted", timeText(exhaustedAt)] as const]),
    ...(budget.windowEnd === undefined
      ? []
      : [
          ["window ends", timeText(budget.windowEnd)] as const,
          ["window before", formatAmount(spentBefore, budget)] as const,
        ]),
    ["lost", formatAmount(lost, budget)],
  ];
  const facts = drawFacts(safeText(budget.name), rows, drawing);
  if (topUps.length === 0) return facts;
  return [...facts, "", ...drawTopUpTable(topUps, () => budget, drawing)];
}

/** Draws top-ups as text. @param budgets the budgets of their amounts */
export function drawTopUps(
  { topUps }: Pick<ListTopUpsResponse, "topUps">,
  budgets: readonly Budget[],
  drawing: Drawing,
): readonly string[] {
  if (topUps.length === 0) return ["There are no top-ups."];
  const byName = new Map(budgets.map((budget) => [budget.name, budget]));
  return drawTopUpTable(topUps, (name) => byName.get(name), drawing);
}

function drawTopUpTable(
  topUps: readonly TopUp[],
  budgetOf: (name: string) => Budget | undefined,
  { columnsMax }: Drawing,
): readonly string[] {
  const rows = topUps.map(({ id, account, amount, expiresAt, author, reason }) => {
    const budget = budgetOf(account?.budget ?? "");
    return [
      safeText(id),
      [account?.budget ?? "", ...(account?.values ?? [])].map(safeText).join(" "),
      budget === undefined ? countText(amount) : formatAmount(amount, budget),
      timeText(expiresAt),
      safeText(author),
      safeText(reason),
    ];
  });
  return drawTable(
    [
      { title: "top-up", isFlexible: true },
      { title: "account", isFlexible: true },
      { title: "amount", ...amountColumn },
      { title: "until", isFlexible: true, columnsMin: 10 },
      { title: "author", isFlexible: true },
      { title: "reason", isFlexible: true },
    ],
    rows,
    columnsMax,
  );
}

/** Draws the usage of calls as text. */
export function drawUsage(
  { rows, currency, decimals }: ListUsageResponse,
  { columnsMax }: Drawing,
): readonly string[] {
  if (rows.length === 0) return ["No call ended in these days."];
  const money = { unit: "money", currency, decimals };
  const isOf = (text: (row: (typeof rows)[number]) => string) =>
    rows.some((row) => text(row) !== "");
  const named: readonly (readonly [string, (row: (typeof rows)[number]) => string])[] = [
    ["day", ({ day }) => day],
    ["service", ({ service }) => safeText(service)],
    ["account", ({ account }) => (account === undefined ? "" : accountText(account))],
    ["model", ({ model, isRest }) => (isRest ? "(all others)" : safeText(model))],
  ];
  const shown = named.filter(([, text]) => isOf(text));
  const counts: readonly Column[] = ["calls", "input", "cached", "output"].map((title) => {
    return { title, align: "right" };
  });
  const cost: readonly Column[] = currency === "" ? [] : [{ title: "cost", ...amountColumn }];
  return drawTable(
    [...shown.map(([title]) => ({ title, isFlexible: true })), ...counts, ...cost],
    rows.map((row) => [
      ...shown.map(([, text]) => text(row)),
      ...[row.callCount, row.inputTokens, row.cachedTokens, row.outputTokens].map(countText),
      ...(currency === "" ? [] : [formatAmount(row.cost, money)]),
    ]),
    columnsMax,
  );
}

/** Returns an account's values; a dash for the only account of a budget. */
function accountText(account: AccountSelector | undefined): string {
  const values = account?.values ?? [];
  return values.length === 0
    ? "-"
    : values.map((one) => safeText(one === "" ? "(none)" : one)).join(", ");
}

/** Draws the used part of an account, and which part of it is only reserved. */
function accountBar({ spent, reserved, capacity, usedRatio }: BudgetAccount): string {
  return barOf({ spent, reserved, capacity }, usedRatio);
}

function sumsBar(sums: BudgetSums): string {
  const { spent, reserved, capacity } = sums;
  return barOf(sums, capacity === 0n ? 0 : Number(spent + reserved) / Number(capacity));
}

function barOf(
  { spent, reserved, capacity }: Pick<BudgetSums, "spent" | "reserved" | "capacity">,
  ratio: number,
): string {
  const part = (amount: bigint) => (capacity === 0n ? 0 : Number(amount) / Number(capacity));
  const bar = drawSplitBar({ first: part(spent), second: part(reserved) }, barColumns);
  return `${bar} ${percentText(ratio).padStart(7)}`;
}

function dayText(time: Timestamp): string {
  return timeText(time).slice(0, 10);
}

function drawFacts(
  title: string,
  rows: readonly (readonly [string, string])[],
  { style, columnsMax }: Drawing,
): readonly string[] {
  return drawTable(
    [
      { title: "budget", paint: style.dim },
      { title, isFlexible: true },
    ],
    rows,
    columnsMax,
  );
}
