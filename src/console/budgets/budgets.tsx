import { formatAmount } from "../../core/budgets/amount-text.js";
import type { Budget } from "../../gen/headgate/admin/v1/admin_pb.js";
import { formatProjected, formatTerms, judgeBudget, usedParts } from "../data/budgets.js";
import { formatCount, formatPercent } from "../data/format.js";
import { formatRoute } from "../data/route.js";
import { showText } from "../data/shown-text.js";
import { Badge, Meter, PolledAnswer } from "../parts/status.jsx";
import { api } from "../state/api.js";
import { usePoll } from "../state/poll.js";

/** All budgets: how much their accounts have spent, and where that leads. */
export function Budgets() {
  const polled = usePoll((signal) => api.budgets.listBudgets({}, { signal }), { everyMs: 5_000 });
  return (
    <>
      <h1>Budgets</h1>
      <PolledAnswer polled={polled.value}>
        {({ budgets }) =>
          budgets.length === 0 ? (
            <p class="empty">
              The active policy has no budgets. The field spec.budgets of{" "}
              <a href="#/policy">the policy</a> adds one.
            </p>
          ) : (
            <div class="cards">
              {budgets.map((budget) => (
                <BudgetCard key={budget.name} budget={budget} />
              ))}
            </div>
          )
        }
      </PolledAnswer>
    </>
  );
}

function BudgetCard({ budget }: { readonly budget: Budget }) {
  const { name, sums, windowEnd } = budget;
  const { tone, word } = judgeBudget(budget);
  if (sums === undefined) return undefined;
  const used = usedParts(sums);
  return (
    <a class={`card ${tone}`} href={formatRoute(["budget", name])}>
      <span class="card-head">
        <b>{showText(name)}</b>
        <Badge tone={tone}>{word}</Badge>
      </span>
      <span class="card-value">
        {formatAmount(sums.spent, budget)}
        <small>
          {" "}
          {sums.accountCount === 0n
            ? "spent: no call yet"
            : `spent of ${formatAmount(sums.capacity, budget)}`}
        </small>
      </span>
      <Meter ratio={used.spent} more={used.reserved} tone={tone} />
      <span class="card-facts">
        <span>
          reserved <b>{formatAmount(sums.reserved, budget)}</b>
        </span>
        {windowEnd === undefined ? undefined : (
          <span>
            projected <b>{formatProjected(sums, budget)}</b>
          </span>
        )}
        <span>
          accounts <b>{formatCount(sums.accountCount)}</b>
        </span>
        <span>
          fullest <b>{formatPercent(sums.usedRatioMax)}</b>
        </span>
        <span>
          each <b>{formatTerms(budget)}</b>
        </span>
      </span>
    </a>
  );
}
