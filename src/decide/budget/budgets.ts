import type { ScalarValue } from "../../core/admission/exchange-messages.js";
import type { Cancel, Clock } from "../../core/base/clock.js";
import { isAccountKey, readAccountKey } from "../../core/budgets/account-key.js";
import type { BudgetLedger } from "../../core/budgets/budget-ledger.js";
import { estimateUsage } from "../../core/budgets/estimate.js";
import { LearnedUsage } from "../../core/budgets/learned-usage.js";
import { PriceIndex } from "../../core/budgets/price.js";
import { readReservationId } from "../../core/budgets/reservation-id.js";
import type { TopUps } from "../../core/budgets/top-up.js";
import { cutModel } from "../../core/usage/usage-fields.js";
import type { UnrecognisedReason } from "../../core/usage/usage-reader.js";
import { isBudgeted } from "../../policy/budgets/budget-policy.js";
import type { Policy } from "../../policy/policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { PolicySource } from "../rate-limit/policy-source.js";
import { callKind } from "./asked-call.js";
import type { UsageObservers } from "./budget-call.js";
import { BudgetCounts, UsageCounts } from "./budget-counts.js";
import { accountSeparator, CallCharge, type ChargedAccount } from "./call-charge.js";
import { CompiledBudget } from "./compiled-budget.js";
import { OpenCalls } from "./open-calls.js";
import { ServiceBudgets, type SharedBudgets } from "./service-budgets.js";
import { BodyObservers, type ShownCall } from "./usage-observers.js";

/** Dependencies of `Budgets`. */
interface BudgetsParts {
  readonly policies: PolicySource;
  readonly ledger: BudgetLedger;
  readonly clock: Clock;
  readonly topUps: TopUps;
  /** A cryptographic hash in hexadecimal. */
  readonly digest: (text: string) => string;
  readonly onEvent: (event: BudgetEvent) => void;
}

/** An event of budgets, for logs. All names are from the policy. */
export interface BudgetEvent {
  readonly kind: "usageUnrecognised";
  readonly service: string;
  readonly reason: UnrecognisedReason;
}

/** Time between two checks for calls to settle, in milliseconds. */
const tickMs = 1_000;

/** Ticks after which the highest used ratios are measured anew. */
const turnTicks = 60;

/**
 * The budgets of the active policy: checked when a request is admitted, charged when its call ends.
 * Learned usage is kept across policies, and calls keep the budgets that admitted them.
 */
export class Budgets {
  readonly #parts: BudgetsParts;
  readonly #shared: SharedBudgets;
  #policy: Policy | undefined;
  #compiled: ReadonlyMap<string, CompiledBudget> = new Map();
  #services: ReadonlyMap<string, ServiceBudgets> = new Map();
  readonly #usageCounts = new Map<string, UsageCounts>();
  /** Reads usage from streams that show responses. */
  readonly observers: UsageObservers = new BodyObservers((fields) => this.#shown(fields));
  #cancelTick: Cancel;
  #tickCount = 0;

  /** Settles overdue calls once per second, until `close`. */
  constructor(parts: BudgetsParts) {
    const { ledger, clock, topUps } = parts;
    this.#parts = parts;
    const calls = new OpenCalls(() => clock.monotonicMs());
    this.#shared = { ledger, clock, topUps, calls, learned: new LearnedUsage() };
    this.#cancelTick = this.#scheduleTick();
    this.#follow();
  }

  /** The budgets of a service of the active policy. Undefined if its usage is not measured. */
  of(service: Pick<ServicePolicy, "name">): ServiceBudgets | undefined {
    this.#follow();
    return this.#services.get(service.name);
  }

  /** The budgets of the active policy, by name. */
  get budgets(): ReadonlyMap<string, CompiledBudget> {
    this.#follow();
    return this.#compiled;
  }

  /** Usage of calls, by service. */
  get usage(): ReadonlyMap<string, UsageCounts> {
    this.#follow();
    return this.#usageCounts;
  }

  /** What earlier calls have used, under any policy. */
  get learned(): LearnedUsage {
    return this.#shared.learned;
  }

  /** Calls in flight that this replica has admitted, including those that wait for their usage. */
  get openCount(): number {
    return this.#shared.calls.count;
  }

  /** The call that a stream shows. Undefined if its service reports usage elsewhere. */
  #shown(fields: ReadonlyMap<string, ScalarValue>): ShownCall | undefined {
    this.#follow();
    const service = textOf(fields.get("service"));
    const measured = this.#services.get(service);
    if (measured?.form === undefined) return undefined;
    const { form } = measured;
    const id = readReservationId(textOf(fields.get("reservation")));
    const open = id && this.#shared.calls.find(id);
    const charge = open === undefined ? this.#chargeOf(fields, measured) : undefined;
    if ((open ?? charge) === undefined) return undefined;
    return {
      form,
      open,
      settle: (end) => charge?.settle(end),
      unrecognised: (reason) => {
        this.#parts.onEvent({ kind: "usageUnrecognised", service, reason });
      },
    };
  }

  /** The charge of a call of another replica. Undefined if this policy lacks its budgets. */
  #chargeOf(
    metadata: ReadonlyMap<string, ScalarValue>,
    measured: ServiceBudgets,
  ): CallCharge | undefined {
    const { service } = measured.context;
    const accounts = this.#accountsOf(textOf(metadata.get("accounts")));
    const id = readReservationId(textOf(metadata.get("reservation")));
    if (accounts === undefined || (id === undefined && accounts.length > 0)) return undefined;
    const { clock, learned } = this.#shared;
    const model = cutModel(textOf(metadata.get("model")));
    const requestBytes = numberOf(metadata.get("requestBytes"));
    const nowMs = Math.round(clock.epochUs() / 1_000);
    const startedMs = numberOf(metadata.get("startedMs")) ?? nowMs;
    const named = accounts.map(({ account }) => {
      return { account, values: readAccountKey(account).values };
    });
    const known = learned.of(callKind(service, model, named));
    const facts = requestBytes === undefined ? { model } : { model, requestBytes };
    const { usage } = estimateUsage(facts, known, measured.settings);
    const { prices } = measured;
    const price = prices?.find(model, nowMs).price;
    const what = { id, model, requestBytes, startedMs, accounts };
    const parts = { ...what, expected: usage, price, prices, learned: known };
    return new CallCharge(measured.context, parts);
  }

  /** From now on, streams are cut, so their ends are not those of their calls. */
  cut(): void {
    this.#shared.calls.cut();
  }

  /** Settles calls that have ended, without waiting for their usage any longer. */
  close(): void {
    this.#cancelTick();
    this.#shared.calls.close();
  }

  #accountsOf(text: string): readonly ChargedAccount[] | undefined {
    if (text === "") return [];
    const accounts: ChargedAccount[] = [];
    for (const account of text.split(accountSeparator)) {
      if (!isAccountKey(account)) return undefined;
      const budget = this.#compiled.get(readAccountKey(account).budget);
      // Costs are reported in order: a missing one makes all of them wrong.
      if (budget === undefined) return undefined;
      accounts.push({ budget, account, estimate: undefined });
    }
    return accounts;
  }

  /** Applies a new policy at the first use after the change. */
  #follow(): void {
    const policy = this.#parts.policies.current();
    if (policy === this.#policy) return;
    this.#policy = policy;
    const { digest } = this.#parts;
    const before = this.#compiled;
    const compiled = (policy?.budgets ?? []).map((budget) => {
      const counts = before.get(budget.name)?.counts ?? new BudgetCounts();
      return new CompiledBudget(budget, counts, digest);
    });
    this.#compiled = new Map(compiled.map((budget) => [budget.policy.name, budget]));
    const prices = policy?.prices && new PriceIndex(policy.prices);
    const services = new Map<string, ServiceBudgets>();
    for (const { name: service, usage } of policy?.services ?? []) {
      if (usage === undefined) continue;
      const budgets = compiled.filter((one) => isBudgeted({ name: service, usage }, one.policy));
      const usageCounts = this.#usageCounts.get(service) ?? new UsageCounts();
      this.#usageCounts.set(service, usageCounts);
      const parts = { service, usage, budgets, prices, usageCounts };
      services.set(service, new ServiceBudgets(this.#shared, parts));
    }
    for (const name of this.#usageCounts.keys()) {
      if (!services.has(name)) this.#usageCounts.delete(name);
    }
    this.#services = services;
  }

  #scheduleTick(): Cancel {
    const { clock } = this.#parts;
    return clock.schedule(tickMs, () => {
      this.#cancelTick = this.#scheduleTick();
      this.#follow();
      this.#shared.calls.expire(clock.monotonicMs());
      this.#tickCount += 1;
      if (this.#tickCount % turnTicks !== 0) return;
      for (const { counts } of this.#compiled.values()) counts.turn();
    });
  }
}

function textOf(value: ScalarValue | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Undefined if it is not a count. */
function numberOf(value: ScalarValue | undefined): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}
