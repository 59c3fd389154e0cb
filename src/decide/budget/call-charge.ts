import type { ScalarValue } from "../../core/admission/exchange-messages.js";
import type { Clock } from "../../core/base/clock.js";
import type { AccountKey } from "../../core/budgets/account.js";
import { costOf } from "../../core/budgets/budget-cost.js";
import type { BudgetLedger, ReservationId } from "../../core/budgets/budget-ledger.js";
import { usedBy } from "../../core/budgets/estimate.js";
import type { LearnedCalls, LearnedCount } from "../../core/budgets/learned-usage.js";
import type { ModelPrice, PriceIndex } from "../../core/budgets/price.js";
import type { Usage } from "../../core/budgets/usage.js";
import type { UsageCounts, UsageOrigin } from "./budget-counts.js";
import type { CompiledBudget } from "./compiled-budget.js";

/** What the charges of one service share. */
export interface ChargeContext {
  readonly service: string;
  readonly ledger: Pick<BudgetLedger, "settle" | "record">;
  readonly clock: Pick<Clock, "epochUs">;
  readonly usageCounts: UsageCounts;
  /** Counts that the units of the service's budgets use. */
  readonly wanted: ReadonlySet<LearnedCount>;
}

/** One account that a call is charged to. */
export interface ChargedAccount {
  readonly budget: CompiledBudget;
  readonly account: AccountKey;
  /** The reserved amount. Undefined if another replica reserved it. */
  readonly estimate: number | undefined;
}

/** One call, from its reservation to its settlement. */
interface CallChargeParts {
  /** Undefined if no budget applies, and only the usage is recorded. */
  readonly id: ReservationId | undefined;
  readonly model: string;
  readonly requestBytes: number | undefined;
  /** When it was admitted, in milliseconds since 1970. */
  readonly startedMs: number;
  /** In the order of the reservation. */
  readonly accounts: readonly ChargedAccount[];
  /** What it was expected to use. */
  readonly expected: Usage;
  /** Of the model that the request names. Undefined without a price table. */
  readonly price: ModelPrice | undefined;
  readonly prices: PriceIndex | undefined;
  readonly learned: LearnedCalls;
}

/** What is known about a call at its end. */
export interface KnownEnd {
  /** The reported usage. */
  readonly usage: Usage | undefined;
  /** False: the upstream has not seen the call, and it costs nothing. */
  readonly mayCost: boolean;
  readonly status: number | undefined;
  /** Whether the response was complete, as far as is known. */
  readonly isComplete: boolean;
  /** Whether the provider reported all of the usage itself. */
  readonly isExact: boolean;
  /** The model that the response names; empty: none. */
  readonly model: string;
}

/** The fields of `CallCharge.metadata`. */
export const metadataFields: ReadonlySet<string> = new Set([
  "service",
  "model",
  "startedMs",
  "requestBytes",
  "reservation",
  "accounts",
]);

/** Separates accounts in metadata; no account key has control characters. */
export const accountSeparator = "\n";

/** The accounts that a call is charged to, and the basis of its cost. Settled once. */
export class CallCharge {
  readonly #context: ChargeContext;
  readonly #parts: CallChargeParts;

  constructor(context: ChargeContext, parts: CallChargeParts) {
    this.#context = context;
    this.#parts = parts;
    for (const { budget, estimate = 0 } of parts.accounts) budget.counts.reserved += estimate;
  }

  get id(): ReservationId | undefined {
    return this.#parts.id;
  }

  /** What another replica needs to settle it; `Budgets` reads it. */
  metadata(): ReadonlyMap<string, ScalarValue> {
    const { id, model, requestBytes, startedMs, accounts } = this.#parts;
    const fields = new Map<string, ScalarValue>([
      ["service", this.#context.service],
      ["model", model],
      ["startedMs", startedMs],
    ]);
    if (requestBytes !== undefined) fields.set("requestBytes", requestBytes);
    if (id === undefined) return fields;
    fields.set("reservation", id);
    return fields.set("accounts", accounts.map(({ account }) => account).join(accountSeparator));
  }

  /** Charges a call that has ended. */
  settle(end: KnownEnd): void {
    const { id, accounts } = this.#parts;
    const price = this.#priceOf(end);
    const used = end.mayCost ? this.#usedBy(end) : undefined;
    for (const { budget, estimate = 0 } of accounts) budget.counts.reserved -= estimate;
    this.#context.usageCounts.origins[originOf(end)] += 1;
    if (id === undefined) {
      this.#learn(end, used);
      return;
    }
    const isUnknown = end.usage === undefined;
    const costs = accounts.map(({ budget: { policy }, estimate }) => {
      if (used === undefined) return 0;
      const cost = costOf(policy.unit, used, price);
      // A declared maximum that is not used exhausts no account. Time is known in any case.
      const isReserved = isUnknown && estimate !== undefined && policy.unit.kind !== "seconds";
      return isReserved ? Math.min(cost, estimate) : cost;
    });
    this.#context.ledger.settle({ id, costs }, (result) => {
      accounts.forEach(({ budget: { counts }, estimate }, i) => {
        counts.settlements[result] += 1;
        if (result === "unknown") return;
        const cost = costs[i] ?? 0;
        counts.spent += cost;
        if (estimate !== undefined) counts.overshoot += Math.max(0, cost - estimate);
      });
      // The replica that settled it first has learned from it.
      if (result !== "unknown") this.#learn(end, used);
    });
  }

  /** Prefers the model in the response: after a fallback, the request names another one. */
  #priceOf({ model }: KnownEnd): ModelPrice | undefined {
    const { price, prices, startedMs } = this.#parts;
    const answered = model === "" ? undefined : prices?.find(model, startedMs);
    return answered?.isKnown === true ? answered.price : price;
  }

  #usedBy({ usage, status }: KnownEnd): Usage {
    const { startedMs, expected, learned } = this.#parts;
    const nowMs = Math.round(this.#context.clock.epochUs() / 1_000);
    const durationMs = Math.max(0, nowMs - startedMs);
    const { outputPerByte } = learned;
    return usedBy({ known: { ...usage, durationMs }, status, expected, outputPerByte });
  }

  #learn(end: KnownEnd, used: Usage | undefined): void {
    if (used === undefined) return;
    const { usage, status, isComplete } = end;
    const { model, requestBytes, accounts, learned } = this.#parts;
    const price = this.#priceOf(end);
    const { service, ledger, wanted, usageCounts: sums } = this.#context;
    const isWhole = isComplete && (status === undefined || status < 400);
    const known = { ...usage, durationMs: used.durationMs ?? 0 };
    if (isWhole) learned.learn({ usage: known, requestBytes, wanted });
    // The model is text from the caller. The price's pattern is from the policy.
    sums.add(price?.model ?? "", used);
    const cost = price && costOf({ kind: "money" }, used, price);
    ledger.record({
      service,
      accounts: accounts.map(({ account }) => account),
      model,
      usage: used,
      cost,
    });
  }
}

function originOf({ usage, mayCost, status, isExact }: KnownEnd): UsageOrigin {
  if (!mayCost || (status !== undefined && status >= 400)) return "none";
  if (usage === undefined) return "estimated";
  return isExact ? "reported" : "partial";
}
