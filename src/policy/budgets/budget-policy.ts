import type { HeaderField } from "../../core/base/header-field.js";
import type { BudgetUnit } from "../../core/budgets/budget-cost.js";
import type { UsageCount } from "../../core/budgets/usage.js";
import type { UsageFormat } from "../../core/usage/usage-forms.js";
import type { BudgetPeriod, ReadBudget } from "./budget-form.js";

export type { BudgetUnit } from "../../core/budgets/budget-cost.js";
export type { ModelPrice, PriceTable } from "../../core/budgets/price.js";

/** What is known of a budget once all of the policy is read. */
interface Finished {
  /** No other budget of the policy has it. */
  readonly name: string;
  /** Names of services; undefined: every service with `usage`. */
  readonly services: readonly string[] | undefined;
  readonly unit: BudgetUnit;
  /** 0 to `amountMax`, in the unit. */
  readonly amount: number;
  /** Other amounts by the values of `per`, in order; the first that matches. `*` in values. */
  readonly overrides: readonly { readonly values: readonly string[]; readonly amount: number }[];
  readonly period: BudgetPeriod;
  /** What happens to calls that do not fit; undefined: refused. */
  readonly over: Exclude<ReadBudget["over"], "refuse"> | undefined;
  /** What is set on the request above `warnAt`. Default: `x-headgate-budget-warning: <name>`. */
  readonly warnHeaders: readonly HeaderField[];
}

/** An item of `budgets`. Plain data. */
export type BudgetPolicy = Omit<ReadBudget, "timeZone" | keyof Finished> & Finished;

/** Where the usage of a call is reported. */
export type UsageSource =
  /** In the body, which a second filter shows Headgate without delaying it. */
  | {
      readonly kind: "body";
      readonly format: UsageFormat;
      /** For `json`: paths such as `usage.prompt_tokens`. */
      readonly fields: Readonly<Partial<Record<UsageCount, readonly string[]>>>;
    }
  /** In response headers or trailers: names by count. */
  | { readonly kind: "headers"; readonly fields: Readonly<Partial<Record<UsageCount, string>>> }
  /** In dynamic metadata of another filter. */
  | {
      readonly kind: "metadata";
      readonly namespace: string;
      readonly fields: Readonly<Partial<Record<UsageCount, readonly string[]>>>;
    }
  /** Nowhere: calls, bytes and seconds count alone. */
  | { readonly kind: "none" };

/** Where a request names its model. */
export type ModelSource =
  | { readonly kind: "body" }
  | { readonly kind: "header"; readonly header: string }
  /** The path segment after this one, such as `models` of `/v1beta/models/gemini-pro:stream`. */
  | { readonly kind: "path"; readonly after: string }
  | { readonly kind: "fixed"; readonly model: string };

/** `usage` of a service: how its calls are measured. */
export interface ServiceUsage {
  readonly model: ModelSource;
  readonly source: UsageSource;
  /** Where the request declares its maximum of output tokens. */
  readonly declaredMax:
    | { readonly kind: "body" }
    | { readonly kind: "header"; readonly header: string }
    | undefined;
  /** Bytes of request bodies that are read; only with a model or a maximum from the body. */
  readonly requestBytesMax: number;
  readonly estimate: {
    /** The quantile of earlier calls that is reserved where nothing is declared. Default 0.9. */
    readonly quantile: number;
    /** Before anything is learned: output tokens, or units of a budget that counts no tokens. */
    readonly initial: number;
  };
  /** The longest call; it is settled then with what is known. */
  readonly callMsMax: number;
}

/** Whether a service's requests are decided after their bodies have been read. */
export function readsRequestBody({ model, declaredMax }: ServiceUsage): boolean {
  return model.kind === "body" || declaredMax?.kind === "body";
}

/** Whether Headgate decides on a service's requests once it has seen their bodies. */
export function readsBodies({ usage }: MeasuredService): boolean {
  return usage !== undefined && readsRequestBody(usage);
}

/** Whether a service's usage is in bodies of its responses. */
export function observesBodies({ usage }: MeasuredService): boolean {
  return usage?.source.kind === "body";
}

interface MeasuredService {
  readonly usage: ServiceUsage | undefined;
}

/** Whether calls of a service are charged to a budget, if their model is. */
export function isBudgeted(
  { name, usage }: { readonly name: string; readonly usage: ServiceUsage | undefined },
  { services }: Pick<BudgetPolicy, "services">,
): boolean {
  return usage !== undefined && (services === undefined || services.includes(name));
}
