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

/** A call with all that budgets make of it. */
export interface AskedCall {
  readonly facts: CallFacts;
  /** In the order of the policy; at most `entriesMax`. */
  readonly entries: readonly AskedAccount[];
  /** What is known of calls of its kind. */
  readonly learned: LearnedCalls;
  readonly expected: UsageEstimate;
  readonly price: ModelPrice | undefined;
}

/** What a call is measured with. */
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

/** Which accounts a call is charged to, and what is reserved at each. Changes nothing. */
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
  let plain: UsageEstimate | undefined;
  const undeclared = (): UsageEstimate => {
    const { outputTokensMax: _, ...rest } = facts;
    plain ??= estimateUsage(rest, known, settings);
    return plain;
  };
  const entries = named.map(({ budget, values, account }): AskedAccount => {
    const { policy } = budget;
    const capacity = budget.capacityOf(values, measures.topUps, nowUs / 1_000);
    const question = { unit: policy.unit, price, capacity, estimate: expected, undeclared };
    const estimate = estimateEntry(question);
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

/** An account of a budget, and whose it is. */
interface NamedAccount {
  readonly budget: CompiledBudget;
  readonly values: readonly string[];
  readonly account: ReservedEntry["account"];
}

/** By the account with the most parts: the one that says most of who calls. */
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

/** The used part of an account together with a call, from 0; 1 of one that nothing fits in. */
export function usedRatio(
  { capacity, estimate }: ReservedEntry,
  { spent, reserved }: Pick<EntryResult, "spent" | "reserved">,
): number {
  return capacity === 0 ? 1 : (spent + reserved + estimate) / capacity;
}
