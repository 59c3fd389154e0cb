import { type EntryResult, entriesMax, type ReservedEntry } from "../../core/budgets/account.js";
import {
  type EntryEstimate,
  type EstimateSettings,
  estimateEntry,
  estimateUsage,
  type UsageEstimate,
} from "../../core/budgets/estimate.js";
import type { CallKind, LearnedCalls, LearnedUsage } from "../../core/budgets/learned-usage.js";
import type { ModelPrice, PriceIndex } from "../../core/budgets/price.js";
import type { TopUps } from "../../core/budgets/top-up.js";
import type { CallFacts } from "../../core/budgets/usage.js";
import type { BudgetedRequest } from "./budget-call.js";
import type { CompiledBudget } from "./compiled-budget.js";

/** One account of a call, and what is reserved there. */
export interface AskedAccount {
  readonly budget: CompiledBudget;
  readonly values: readonly string[];
  readonly entry: ReservedEntry;
  readonly estimate: EntryEstimate;
}

/** A call with everything that budgets determine for it. */
export interface AskedCall {
  readonly facts: CallFacts;
  /** In the order of the policy; at most `entriesMax`. */
  readonly entries: readonly AskedAccount[];
  /** What is known about calls of its kind. */
  readonly learned: LearnedCalls;
  readonly expected: UsageEstimate;
  readonly price: ModelPrice | undefined;
}

/** Inputs of `prepareCall`. */
export interface CallMeasures {
  readonly service: string;
  readonly budgets: readonly CompiledBudget[];
  /** Undefined without a price table. */
  readonly prices: PriceIndex | undefined;
  readonly settings: EstimateSettings;
  readonly learned: LearnedUsage;
  readonly topUps: TopUps;
  /** Microseconds since 1970. */
  readonly nowUs: number;
}

/** Returns the accounts that a call is charged to, and the reservations. Changes nothing. */
export function prepareCall(
  request: BudgetedRequest,
  facts: CallFacts,
  measures: CallMeasures,
): AskedCall {
  const { service, budgets, prices, learned, settings, nowUs } = measures;
  const { model } = facts;
  const { headers, attributes } = request;
  const whose = { headers, attributes, service, model };
  const named: NamedAccount[] = [];
  for (const budget of budgets) {
    if (named.length >= entriesMax || !budget.appliesTo(model)) continue;
    const values = budget.valuesOf(whose);
    named.push({ budget, values, account: budget.accountOf(values) });
  }
  const known = learned.of(callKind(service, model, named));
  const expected = estimateUsage(facts, known, settings);
  const price = prices?.find(model, nowUs / 1_000).price;
  const entries = named.map(({ budget, values, account }): AskedAccount => {
    const { policy } = budget;
    const capacity = budget.capacityOf(values, measures.topUps, nowUs / 1_000);
    const estimate = estimateEntry({
      unit: policy.unit,
      price,
      capacity,
      estimate: expected,
      undeclared: () => estimateUsage(withoutMax(facts), known, settings),
    });
    const entry: ReservedEntry = {
      account,
      law: budget.lawAt(nowUs),
      capacity,
      estimate: estimate.amount,
      isEnforced: policy.over === undefined && !policy.isDryRun && !request.isObserved,
      whenLost: policy.whenLost,
      onStoreFailure: policy.onStoreFailure,
    };
    return { budget, values, entry, estimate };
  });
  return { facts, entries, learned: known, expected, price };
}

function withoutMax({ outputTokensMax: _, ...facts }: CallFacts): CallFacts {
  return facts;
}

/** An account of a budget, and the values that identify it. */
interface NamedAccount {
  readonly budget: CompiledBudget;
  readonly values: readonly string[];
  readonly account: ReservedEntry["account"];
}

/** The kind of a call by the account with the most parts: it tells most about the caller. */
export function callKind(
  service: string,
  model: string,
  accounts: readonly Pick<NamedAccount, "account" | "values">[],
): CallKind {
  const ofModel = `${service}\n${model}`;
  let most = accounts[0];
  for (const one of accounts) {
    if (one.values.length > (most?.values.length ?? 0)) most = one;
  }
  return { caller: `${ofModel}\n${most?.account ?? ""}`, model: ofModel };
}

/** Used fraction of an account including a call, from 0. 1 if nothing fits into the account. */
export function usedRatio(
  { capacity, estimate }: ReservedEntry,
  { spent, reserved }: Pick<EntryResult, "spent" | "reserved">,
): number {
  return capacity === 0 ? 1 : (spent + reserved + estimate) / capacity;
}
