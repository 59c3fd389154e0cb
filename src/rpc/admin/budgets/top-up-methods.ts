import type { ServiceImpl } from "@connectrpc/connect";
import { formatTimestamp } from "../../../core/base/timestamp.js";
import { amountMax } from "../../../core/budgets/account.js";
import type { TopUp } from "../../../core/budgets/top-up.js";
import type { BudgetService } from "../../../gen/headgate/admin/v1/admin_pb.js";
import type { BudgetPolicy } from "../../../policy/budgets/budget-policy.js";
import type { BudgetAdministration, TopUpView } from "../budget-parts.js";
import { actorOf, demandPart } from "../call.js";
import { AdminFailure, notFound } from "../failures.js";
import { conflict } from "../override-methods.js";
import { nextOf, pageRule, pageToken, readPageToken } from "../pages.js";
import { keyNameBounds, RequestReader } from "../request-reader.js";
import { encodeAccount, encodeTopUp } from "./budget-messages.js";
import {
  type BudgetServiceParts,
  budgetAudit,
  demandAccount,
  demandBudget,
  neededName,
  readId,
  readSelector,
  reasonRule,
  visibleBudgets,
} from "./budget-requests.js";

/** The methods for top-ups. */
export function topUpMethods(
  parts: BudgetServiceParts,
): Pick<ServiceImpl<typeof BudgetService>, "topUpBudget" | "deleteTopUp" | "listTopUps"> {
  return {
    topUpBudget: async (request, context) => {
      const budgets = demandPart(parts.budgets);
      const reader = new RequestReader();
      const selector = readSelector(request.account, reader);
      const amount = reader.whole("amount", request.amount, { min: 1, max: amountMax });
      const expiresEpochMs = reader.epochMs("expires_at", request.expiresAt);
      const nowMs = Math.floor(parts.clock.epochUs() / 1_000);
      if (expiresEpochMs !== undefined && expiresEpochMs <= nowMs) {
        reader.report("expires_at", "it is in the past");
      }
      const reason = reader.text("reason", request.reason, reasonRule);
      const id = readId(request.id, reader, { ...parts, prefix: "t" });
      reader.end();
      const budget = demandBudget(parts, selector.budget, { context, role: "operator" });
      const { values } = demandAccount(budget, selector);
      const untilMs = expiresEpochMs ?? endOf(budgets, budget, nowMs);
      const actor = actorOf(context).name;
      const topUp = { id, budget: budget.name, values, amount, untilMs, reason, actor };
      const outcome = await budgets.changeTopUp(id, topUp, {
        expectedVersion: 0,
        audit: budgetAudit(parts, {
          ...{ action: "TopUpBudget", budget, reason, context },
          ...{ before: undefined, after: topUpJson(topUp) },
        }),
      });
      const added = await topUpAdded(budgets, topUp, outcome);
      const isPattern = values.includes("*");
      const account = isPattern ? undefined : await budgets.account(budget, values);
      return {
        topUp: encodeTopUp(added),
        ...(account === undefined
          ? {}
          : { account: encodeAccount(account, { parts, budgets, budget }) }),
      };
    },
    ...storedMethods(parts),
  };
}

/** The methods that remove and list existing top-ups. */
function storedMethods(
  parts: BudgetServiceParts,
): Pick<ServiceImpl<typeof BudgetService>, "deleteTopUp" | "listTopUps"> {
  return {
    deleteTopUp: async (request, context) => {
      const budgets = demandPart(parts.budgets);
      const reader = new RequestReader();
      const name = reader.text("budget", request.budget, neededName);
      const id = reader.text("id", request.id, neededName);
      const reason = reader.text("reason", request.reason, reasonRule);
      reader.end();
      const budget = demandBudget(parts, name, { context, role: "operator" });
      const own = [...budgets.topUps()].filter(({ topUp }) => topUp.budget === name);
      const known = own.find(({ topUp }) => topUp.id === id);
      if (known === undefined) {
        const ids = own.map(({ topUp }) => topUp.id);
        throw notFound("top-up", id, ids);
      }
      const outcome = await budgets.changeTopUp(id, undefined, {
        expectedVersion: known.version,
        audit: budgetAudit(parts, {
          ...{ action: "DeleteTopUp", budget, reason, context },
          ...{ before: topUpJson(known.topUp), after: undefined },
        }),
      });
      if (outcome.kind !== "changed")
        throw conflict("top-up", outcome.kind === "conflict" ? outcome.version : 0);
      return {};
    },
    listTopUps: (request, context) => {
      const budgets = demandPart(parts.budgets);
      const reader = new RequestReader();
      const name = reader.text("budget", request.budget, keyNameBounds);
      const countMax = reader.count("page_size", request.pageSize, pageRule);
      reader.end();
      const shown =
        name === "" ? visibleBudgets(parts, context) : [demandBudget(parts, name, { context })];
      const names = new Set(shown.map((budget) => budget.name));
      const all = [...budgets.topUps()].filter(({ topUp }) => names.has(topUp.budget));
      const byId = new Map(all.map((one) => [one.topUp.id, one]));
      const ids = nextOf(byId.keys(), readPageToken(request.pageToken), countMax + 1);
      const listed = ids.slice(0, countMax);
      return {
        topUps: listed.flatMap((id) => byId.get(id) ?? []).map(encodeTopUp),
        nextPageToken: ids.length > countMax ? pageToken(listed.at(-1) ?? "") : "",
      };
    },
  };
}

/** Returns the current top-up: for a repeated call, that of the first one. */
async function topUpAdded(
  budgets: BudgetAdministration,
  topUp: TopUp,
  outcome: Awaited<ReturnType<BudgetAdministration["changeTopUp"]>>,
): Promise<TopUpView> {
  if (outcome.kind === "full") {
    throw new AdminFailure("exhausted", "the maximum number of top-ups is reached");
  }
  if (outcome.kind === "changed") return { topUp, version: outcome.version };
  const known = [...budgets.topUps()].find((one) => one.topUp.id === topUp.id);
  const isSame =
    known?.topUp.budget === topUp.budget &&
    known.topUp.amount === topUp.amount &&
    JSON.stringify(known.topUp.values) === JSON.stringify(topUp.values);
  if (known === undefined || !isSame)
    throw new AdminFailure("conflict", "id: it is another top-up's");
  return known;
}

/** Returns when a top-up expires. */
function endOf(budgets: BudgetAdministration, budget: BudgetPolicy, nowMs: number): number {
  const { period } = budget;
  if (period.kind === "drain") return nowMs + Math.ceil(period.periodUs / 1_000);
  const endUs = budgets.window(budget)?.endUs ?? 0;
  return Math.ceil(endUs / 1_000);
}

function topUpJson({ id, values, amount, untilMs }: TopUp) {
  return { id, values: [...values], amount, until: formatTimestamp(untilMs * 1_000) };
}
