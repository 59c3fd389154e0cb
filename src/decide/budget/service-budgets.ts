import type { Clock } from "../../core/base/clock.js";
import type {
  BudgetLedger,
  ReservationId,
  ReserveAnswer,
} from "../../core/budgets/budget-ledger.js";
import { type EstimateSettings, learnedCountsOf } from "../../core/budgets/estimate.js";
import type { LearnedUsage } from "../../core/budgets/learned-usage.js";
import type { PriceIndex } from "../../core/budgets/price.js";
import type { TopUps } from "../../core/budgets/top-up.js";
import { createUsageForm, type UsageForm } from "../../core/usage/usage-forms.js";
import type { ServiceUsage } from "../../policy/budgets/budget-policy.js";
import { type AskedCall, prepareCall, usedRatio } from "./asked-call.js";
import type { BudgetAnswer, BudgetAsker, BudgetedCall, BudgetedRequest } from "./budget-call.js";
import type { UsageCounts } from "./budget-counts.js";
import { CallCharge, type ChargeContext } from "./call-charge.js";
import { callFactsOf } from "./call-facts.js";
import type { CompiledBudget } from "./compiled-budget.js";
import type { OpenCalls } from "./open-calls.js";
import { passedMarks, refusedBy } from "./reservation-answer.js";

/** What the budgets of all services share. */
export interface SharedBudgets {
  readonly ledger: BudgetLedger;
  readonly clock: Clock;
  readonly learned: LearnedUsage;
  readonly calls: OpenCalls;
  readonly topUps: TopUps;
}

/** Budgets of one service under one policy. */
interface ServiceBudgetsParts {
  readonly service: string;
  readonly usage: ServiceUsage;
  readonly budgets: readonly CompiledBudget[];
  /** Undefined without a price table. */
  readonly prices: PriceIndex | undefined;
  readonly usageCounts: UsageCounts;
}

/** Budgets of one service: which of them apply to a call, its estimate, and their answer. */
export class ServiceBudgets implements BudgetAsker {
  readonly #shared: SharedBudgets;
  readonly #parts: ServiceBudgetsParts;
  readonly #context: ChargeContext;
  /** How bodies report usage. Undefined if they are not read. */
  readonly form: UsageForm | undefined;

  constructor(shared: SharedBudgets, parts: ServiceBudgetsParts) {
    this.#shared = shared;
    this.#parts = parts;
    const { ledger, clock } = shared;
    const { service, usageCounts } = parts;
    const wanted = new Set(parts.budgets.flatMap(({ policy: { unit } }) => learnedCountsOf(unit)));
    this.#context = { service, ledger, clock, usageCounts, wanted };
    const { source } = parts.usage;
    this.form = source.kind === "body" ? createUsageForm(source) : undefined;
  }

  get settings(): EstimateSettings {
    return this.#parts.usage.estimate;
  }

  get prices(): PriceIndex | undefined {
    return this.#parts.prices;
  }

  /** For calls that another replica has admitted. */
  get context(): ChargeContext {
    return this.#context;
  }

  ask(
    request: BudgetedRequest,
    deadlineMs: number,
    answered: (answer: BudgetAnswer) => void,
  ): void {
    const asked = this.prepare(request);
    if (asked.entries.length > 0) {
      const entries = asked.entries.map(({ entry }) => entry);
      this.#shared.ledger.reserve(entries, deadlineMs, (answer) =>
        answered(this.#answerOf(asked, answer)),
      );
    } else {
      // No budget limits the call, but its usage is reported.
      answered({ kind: "passes", call: this.#open(asked, undefined), marks: undefined });
    }
  }

  /** Returns the accounts that a call is charged to, and the amounts. Changes nothing. */
  prepare(request: BudgetedRequest): AskedCall {
    const { service, budgets, prices } = this.#parts;
    const { clock, learned, topUps } = this.#shared;
    const { settings } = this;
    const nowUs = clock.epochUs();
    const measures = { service, budgets, prices, settings, learned, topUps, nowUs };
    return prepareCall(request, callFactsOf(this.#parts.usage, request), measures);
  }

  #answerOf(asked: AskedCall, { kind, id, result }: ReserveAnswer): BudgetAnswer {
    const { entries } = asked;
    for (const [i, { budget, entry }] of entries.entries()) {
      const { counts } = budget;
      if (kind === "failed") counts.withoutStoreCount += 1;
      const found = result.entries[i];
      if (found !== undefined) counts.sawUsed(usedRatio(entry, found));
    }
    if (id === undefined) return refusedBy(entries, result.entries);
    const marks = passedMarks(entries, result.entries);
    return { kind: "passes", call: this.#open(asked, id), marks };
  }

  #open(asked: AskedCall, id: ReservationId | undefined): BudgetedCall {
    const { entries, facts, learned, expected, price } = asked;
    const { model, requestBytes } = facts;
    const { clock, calls } = this.#shared;
    const accounts = entries.map(({ budget, entry: { account, estimate } }) => {
      return { budget, account, estimate };
    });
    const { prices } = this.#parts;
    const { source, callMsMax } = this.#parts.usage;
    const charge = new CallCharge(this.#context, {
      id,
      model,
      requestBytes,
      startedMs: Math.round(clock.epochUs() / 1_000),
      accounts,
      expected: expected.usage,
      price,
      prices,
      learned,
    });
    return calls.open({
      charge,
      source,
      expiresMs: clock.monotonicMs() + callMsMax,
    });
  }
}
