import type { AccountState, EntryResult, ReservedEntry } from "../../core/budgets/account.js";
import { entryResult, openAccount, withSpeed } from "../../core/budgets/account-law.js";
import { budgetCost } from "../../core/budgets/budget-cost.js";
import type { EntryEstimate } from "../../core/budgets/estimate.js";
import type { LearnedUsage } from "../../core/budgets/learned-usage.js";
import { PriceIndex } from "../../core/budgets/price.js";
import type { TopUps } from "../../core/budgets/top-up.js";
import type { RequestMarks } from "../../core/limits/request-marks.js";
import { type BudgetPolicy, isBudgeted } from "../../policy/budgets/budget-policy.js";
import type { Policy } from "../../policy/policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { type AskedAccount, type AskedCall, prepareCall, usedRatio } from "../budget/asked-call.js";
import type { BudgetedRequest } from "../budget/budget-call.js";
import { BudgetCounts } from "../budget/budget-counts.js";
import { callFactsOf } from "../budget/call-facts.js";
import { CompiledBudget } from "../budget/compiled-budget.js";
import { passedMarks } from "../budget/reservation-answer.js";

/** How a call is measured, and the current answer of its budgets. */
export interface ExplainedUsage {
  /** Empty: the request names none. */
  readonly model: string;
  /** The row of the price table. Undefined: there is no table. */
  readonly price: { readonly model: string; readonly isKnown: boolean } | undefined;
  readonly isDenied: boolean;
  /** Whether a budget denies it that is not among `budgets`. */
  readonly isDeniedByHidden: boolean;
  /** What changes about it if it passes. */
  readonly marks: RequestMarks | undefined;
  readonly budgets: readonly ExplainedBudget[];
}

/** One account of a call. Amounts are in the budget's unit. */
export interface ExplainedBudget extends EntryResult {
  readonly budget: BudgetPolicy;
  readonly values: readonly string[];
  readonly capacity: number;
  readonly estimate: EntryEstimate;
  /** Whether the call is expected to cost more than the capacity, so that it reserves less. */
  readonly isCapped: boolean;
  readonly effect: "fits" | "refuse" | "annotate" | "fallback" | "dryRun";
  readonly isWarned: boolean;
}

/** Dependencies of a `BudgetExplainer`. */
interface BudgetExplainerParts {
  readonly learned: LearnedUsage;
  readonly topUps: TopUps;
  /** A cryptographic hash in hexadecimal. */
  readonly digest: (text: string) => string;
  /** Reads the current state of accounts. */
  readonly read: (
    accounts: readonly Pick<ReservedEntry, "account" | "law">[],
  ) => Promise<readonly (AccountState | undefined)[]>;
}

/**
 * How much of a budget is shown: `all`; the `policy` without the state of accounts; only its part
 * in the `verdict`; or nothing, as if it did not exist.
 */
type BudgetSight = "all" | "policy" | "verdict" | "none";

/** Input of an explanation of budgets. */
export interface ExplainBudgetsCall {
  readonly policy: Pick<Policy, "budgets" | "prices">;
  readonly service: ServicePolicy;
  readonly request: BudgetedRequest;
  /** How much of a budget is shown. */
  readonly sightOf: (budget: BudgetPolicy) => BudgetSight;
  /** The current time, in microseconds since 1970. */
  readonly epochUs: number;
}

/**
 * Explains what budgets would do with a call, without reserving anything: by the estimates and
 * answers of `ServiceBudgets`, under any policy.
 */
export class BudgetExplainer {
  readonly #parts: BudgetExplainerParts;

  constructor(parts: BudgetExplainerParts) {
    this.#parts = parts;
  }

  /**
   * Undefined for a service without `usage`.
   *
   * @throws ServiceError STORE_ codes of `read`
   */
  async explain(call: ExplainBudgetsCall): Promise<ExplainedUsage | undefined> {
    const { policy, service, request, sightOf, epochUs: nowUs } = call;
    const { usage } = service;
    if (usage === undefined) return undefined;
    const { learned, topUps, digest } = this.#parts;
    const own = policy.budgets.filter((budget) => {
      return isBudgeted(service, budget) && sightOf(budget) !== "none";
    });
    // With separate counts: explanations are not counted.
    const budgets = own.map((budget) => new CompiledBudget(budget, new BudgetCounts(), digest));
    const prices = policy.prices && new PriceIndex(policy.prices);
    const { estimate: settings } = usage;
    const measures = { budgets, prices, settings, learned, topUps, nowUs };
    const facts = callFactsOf(usage, request);
    const asked = prepareCall(request, facts, { ...measures, service: service.name });
    const states = await this.#read(asked.entries, sightOf);
    const results = asked.entries.map(({ entry }, i): EntryResult => {
      const { spent = 0, reserved = 0 } = states[i] ?? {};
      const account = withSpeed({ ...openAccount(entry.law, nowUs), spent, reserved }, entry);
      return entryResult(account, entry, nowUs);
    });
    const denying = asked.entries.filter(({ entry }, i) => {
      return entry.isEnforced && results[i]?.isOver === true;
    });
    const isDenied = denying.length > 0;
    const isShown = ({ budget }: AskedAccount): boolean => sightOf(budget.policy) !== "verdict";
    const shown = asked.entries.flatMap((entry, i) => {
      const result = results[i];
      return result === undefined || !isShown(entry) ? [] : [{ entry, result }];
    });
    const found = prices?.find(facts.model, nowUs / 1_000);
    return {
      model: facts.model,
      price: found && { model: found.price.model, isKnown: found.isKnown },
      isDenied,
      isDeniedByHidden: denying.some((entry) => !isShown(entry)),
      // Headers may contain the names of budgets.
      marks: isDenied
        ? undefined
        : passedMarks(
            shown.map(({ entry }) => entry),
            shown.map(({ result }) => result),
          ),
      budgets: shown.map(({ entry, result }) => explainEntry(asked, entry, result)),
    };
  }

  /** In the order of the entries. Undefined for an entry that is not read. */
  async #read(
    entries: readonly AskedAccount[],
    sightOf: ExplainBudgetsCall["sightOf"],
  ): Promise<readonly (AccountState | undefined)[]> {
    const read = entries.filter(({ budget }) => {
      return ["all", "verdict"].includes(sightOf(budget.policy));
    });
    if (read.length === 0) return [];
    const rows = await this.#parts.read(
      read.map(({ entry: { account, law } }) => ({ account, law })),
    );
    return entries.map((entry) => rows[read.indexOf(entry)]);
  }
}

function explainEntry(
  { expected, price }: AskedCall,
  { budget, values, entry, estimate }: AskedAccount,
  result: EntryResult,
): ExplainedBudget {
  const { policy } = budget;
  const { capacity } = entry;
  const { isDryRun, over, warnAt, unit } = policy;
  return {
    ...result,
    budget: policy,
    values,
    capacity,
    estimate,
    isCapped: budgetCost(unit, expected.usage, price).cost > capacity,
    effect: !result.isOver ? "fits" : isDryRun ? "dryRun" : (over?.kind ?? "refuse"),
    isWarned: warnAt !== undefined && !isDryRun && usedRatio(entry, result) >= warnAt,
  };
}
