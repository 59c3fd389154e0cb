import { formatAmount, formatEstimate } from "../../core/budgets/amount-text.js";
import {
  AccountOrder,
  type Budget,
  type BudgetAccount,
  type BudgetSums,
  type UsageRow,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  accountRoute,
  dayBefore,
  formatAccount,
  formatExhausted,
  formatProjected,
  formatTerms,
  judgeAccount,
  judgeBudget,
  usedParts,
} from "../data/budgets.js";
import { formatCount, formatMany, formatPercent, formatTime, millisOf } from "../data/format.js";
import { showText } from "../data/shown-text.js";
import { DataTable, numberColumn, type TableColumn, textColumn } from "../parts/data-table.jsx";
import { Badge, Meter, PolledAnswer, Tile } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { api } from "../state/api.js";
import { nowMs } from "../state/browser.js";
import { paramOf, route, setParams } from "../state/location.js";
import { usePoll } from "../state/poll.js";

/** One budget: its sums, who spends most, and on which models. */
export function BudgetPage() {
  const [, name = ""] = route.value.path;
  const polled = usePoll((signal) => api.budgets.listBudgets({ budget: name }, { signal }), {
    everyMs: 5_000,
    about: name,
  });
  return (
    <>
      <p class="crumbs">
        <a href="#/budgets">Budgets</a>
      </p>
      <PolledAnswer polled={polled.value}>
        {({ budgets: [budget] }) => {
          if (budget === undefined) return <h1>{showText(name)}</h1>;
          const { tone, word } = judgeBudget(budget);
          return (
            <>
              <div class="view-head">
                <h1>
                  {showText(name)} <Badge tone={tone}>{word}</Badge>
                </h1>
              </div>
              {budget.sums === undefined ? undefined : (
                <BudgetTiles budget={budget} sums={budget.sums} />
              )}
              <Spenders budget={budget} />
              <ModelUsage budget={budget} />
              <Terms budget={budget} />
            </>
          );
        }}
      </PolledAnswer>
    </>
  );
}

function BudgetTiles({ budget, sums }: { readonly budget: Budget; readonly sums: BudgetSums }) {
  const used = usedParts(sums);
  const { tone } = judgeBudget(budget);
  const amount = (value: bigint) => formatAmount(value, budget);
  return (
    <>
      <Meter ratio={used.spent} more={used.reserved} tone={tone} />
      <div class="tiles">
        <Tile
          label="Spent"
          value={amount(sums.spent)}
          detail={`${formatPercent(used.spent)} of ${amount(sums.capacity)}`}
        />
        <Tile
          label="Reserved"
          value={amount(sums.reserved)}
          detail={`${formatPercent(used.reserved)}, by calls in flight`}
        />
        {sums.projected === undefined ? undefined : (
          <Tile
            label="Projected"
            value={formatEstimate(sums.projected, budget)}
            detail={`at ${formatTime(millisOf(budget.windowEnd))}, at the rate so far`}
            tone={sums.projectedOverCount > 0n ? "notice" : "good"}
          />
        )}
        {sums.projected === undefined ? undefined : (
          <Tile label="Window before" value={amount(sums.spentBefore)} detail="spent in all" />
        )}
        <Tile
          label="Accounts"
          value={formatCount(sums.accountCount)}
          detail={`${formatCount(sums.overCount)} exhausted, ${formatCount(sums.warnedCount)} near the end`}
          tone={sums.overCount > 0n ? "bad" : sums.warnedCount > 0n ? "warn" : "good"}
        />
        <Tile
          label="Lost"
          value={amount(sums.lost)}
          detail="estimates of calls whose replica died"
          tone={sums.lost > 0n ? "notice" : "good"}
        />
      </div>
    </>
  );
}

/** Accounts that are shown. */
const spendersMax = 100;

function Spenders({ budget }: { readonly budget: Budget }) {
  const isByRatio = paramOf("by") === "used";
  const { name } = budget;
  const polled = usePoll(
    (signal) => {
      const order = isByRatio ? AccountOrder.USED_RATIO : AccountOrder.SPENT;
      const asked = { budget: name, order, pageSize: spendersMax };
      return api.budgets.listBudgetAccounts(asked, { signal });
    },
    { everyMs: 5_000, about: `${name} ${isByRatio}` },
  );
  return (
    <TitledPanel
      title="Top spenders"
      aside={
        <button
          type="button"
          aria-pressed={isByRatio}
          onClick={() => setParams({ by: isByRatio ? "" : "used" })}
        >
          By used part
        </button>
      }
    >
      <PolledAnswer polled={polled.value}>
        {({ accounts, nextPageToken }) => (
          <>
            <DataTable
              label={`Top spenders of ${name}`}
              name="a."
              columns={accountColumns(budget)}
              rows={accounts}
              rowId={({ account }) => accountRoute(account)}
              href={({ account }) => accountRoute(account)}
              empty="No call has been charged yet."
            />
            {nextPageToken === "" ? undefined : (
              <p class="muted">
                These are the first {formatMany(accounts.length, "account")}. The command headgate
                budgets show lists more.
              </p>
            )}
          </>
        )}
      </PolledAnswer>
    </TitledPanel>
  );
}

function accountColumns(budget: Budget): readonly TableColumn<BudgetAccount>[] {
  const money = (title: string, of: (row: BudgetAccount) => bigint, isWideOnly = false) =>
    numberColumn<BudgetAccount>(title, of, {
      render: (row) => formatAmount(of(row), budget),
      isWideOnly,
    });
  return [
    textColumn("Account", ({ account }) => formatAccount(account)),
    {
      id: "used",
      title: "Used",
      value: ({ usedRatio }) => usedRatio,
      render: (row) => {
        const used = usedParts(row);
        return (
          <span class="used">
            <Meter ratio={used.spent} more={used.reserved} tone={judgeAccount(row, budget).tone} />
            {formatPercent(row.usedRatio)}
          </span>
        );
      },
    },
    money("Spent", ({ spent }) => spent),
    money("Reserved", ({ reserved }) => reserved, true),
    money("Capacity", ({ capacity }) => capacity, true),
    ...(budget.windowEnd === undefined
      ? []
      : [
          numberColumn<BudgetAccount>("Projected", ({ projected }) => projected ?? 0n, {
            render: (row) => formatProjected(row, budget),
            isWideOnly: true,
          }),
          textColumn<BudgetAccount>("Exhausted", formatExhausted, { isWideOnly: true }),
        ]),
  ];
}

const ranges = [
  ["0", "today"],
  ["6", "7 days"],
  ["29", "30 days"],
  ["89", "90 days"],
] as const;

/** What calls of the budget used, by model. */
function ModelUsage({ budget: { name } }: { readonly budget: Budget }) {
  const days = paramOf("days") || "29";
  const polled = usePoll(
    (signal) => {
      const asked = {
        budget: name,
        groupBy: ["model"],
        fromDay: dayBefore(nowMs(), Number(days) || 0),
        toDay: dayBefore(nowMs(), 0),
      };
      return api.budgets.listUsage(asked, { signal });
    },
    { everyMs: 30_000, about: `${name} ${days}` },
  );
  return (
    <TitledPanel
      title="Usage by model"
      aside={
        <select
          aria-label="Days, in UTC"
          value={days}
          onInput={({ currentTarget }) => setParams({ days: currentTarget.value })}
        >
          {ranges.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      }
    >
      <PolledAnswer polled={polled.value}>
        {({ rows, currency, decimals }) => (
          <DataTable
            label={`Usage of ${name} by model`}
            name="m."
            columns={usageColumns(rows, { unit: "money", currency, decimals })}
            rows={rows}
            rowId={({ model, isRest }) => `${isRest} ${model}`}
            empty="No call has ended in these days."
          />
        )}
      </PolledAnswer>
    </TitledPanel>
  );
}

function usageColumns(
  rows: readonly UsageRow[],
  money: { readonly unit: string; readonly currency: string; readonly decimals: number },
): readonly TableColumn<UsageRow>[] {
  const hasCosts = money.currency !== "";
  const sizeOf = (row: UsageRow): number => Number(hasCosts ? row.cost : row.callCount);
  const total = rows.reduce((sum, row) => sum + sizeOf(row), 0);
  const shareOf = (row: UsageRow): number => (total === 0 ? 0 : sizeOf(row) / total);
  const tokens = (title: string, of: (row: UsageRow) => bigint) =>
    numberColumn<UsageRow>(title, of, { isWideOnly: true });
  return [
    textColumn("Model", ({ model, isRest }) =>
      isRest ? "(others)" : model === "" ? "(none)" : showText(model),
    ),
    {
      id: "share",
      title: "Share",
      value: shareOf,
      render: (row) => (
        <span class="used">
          <Meter ratio={shareOf(row)} tone="plain" />
          {formatPercent(shareOf(row))}
        </span>
      ),
    },
    ...(hasCosts
      ? [
          numberColumn<UsageRow>("Cost", ({ cost }) => cost, {
            render: ({ cost }) => formatAmount(cost, money),
          }),
        ]
      : []),
    numberColumn("Calls", ({ callCount }) => callCount),
    tokens("Input", ({ inputTokens }) => inputTokens),
    tokens("Cached", ({ cachedTokens }) => cachedTokens),
    tokens("Output", ({ outputTokens }) => outputTokens),
  ];
}

const overTexts: Readonly<Record<string, string>> = {
  refuse: "calls are refused",
  annotate: "calls pass with headers",
  fallback: "calls go to the fallback",
};

function Terms({ budget }: { readonly budget: Budget }) {
  const { per, services, models, over, warnAt, onStoreFailure, whenLost, isDryRun } = budget;
  const facts: readonly (readonly [string, string])[] = [
    ["Amount", formatTerms(budget)],
    ["Accounts", per.length === 0 ? "one for all calls" : `for each ${showText(per.join(", "))}`],
    ["Services", services.length === 0 ? "all with usage" : showText(services.join(", "))],
    ["Models", models.length === 0 ? "all" : showText(models.join(", "))],
    ["Exhausted", `${overTexts[over] ?? over}${isDryRun ? " (dry run: they pass)" : ""}`],
    ["Warns", warnAt === undefined ? "never" : `from ${formatPercent(warnAt)}`],
    ["Without the store", onStoreFailure],
    ["Lost calls", whenLost === "charge" ? "are charged" : "are released"],
  ];
  return (
    <TitledPanel title="Terms">
      <dl class="facts">
        {facts.map(([title, text]) => [
          <dt key={title}>{title}</dt>,
          <dd key={`${title} text`}>{text}</dd>,
        ])}
      </dl>
    </TitledPanel>
  );
}
