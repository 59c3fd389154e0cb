import type { HeaderField } from "../../core/base/header-field.js";
import type { BudgetUnit } from "../../core/budgets/budget-cost.js";
import type { UsageCount } from "../../core/budgets/usage.js";
import type { UsageFormat } from "../../core/usage/usage-forms.js";
import type { BudgetPeriod, ReadBudget } from "./budget-form.js";

export type { BudgetUnit } from "../../core/budgets/budget-cost.js";
export type { ModelPrice, PriceTable } from "../../core/budgets/price.js";

/** Properties of a budget that are known after the whole policy is read. */
interface Finished {
  /** Unique in the policy. */
  readonly name: string;
  /** Names of services; undefined: every service with `usage`. */
  readonly services: readonly string[] | undefined;
  readonly unit: BudgetUnit;
  /** 0 to `amountMax`, in the unit. */
  readonly amount: number;
  /** Other amounts by the values of `per`, with `*` in values. The first match applies. */
  readonly overrides: readonly { readonly values: readonly string[]; readonly amount: number }[];
  readonly period: BudgetPeriod;
  /** Handling of calls that do not fit; undefined: refused. */
  readonly over: Exclude<ReadBudget["over"], "refuse"> | undefined;
  /** Headers set on the request above `warnAt`. Default: `x-headgate-budget-warning: <name>`. */
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
  /** Not reported: only calls, bytes and seconds count. */
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
  /** Maximum bytes read of request bodies; only for a model or a maximum from the body. */
  readonly requestBytesMax: number;
  readonly estimate: {
    /** The quantile of earlier calls that is reserved if nothing is declared. Default 0.9. */
    readonly quantile: number;
    /** Before anything is learned: output tokens, or units if the budget does not count tokens. */
    readonly initial: number;
  };
  /** Maximum duration of a call. Then it is settled with what is known. */
  readonly callMsMax: number;
}

/** Reports whether a service's requests are decided after their bodies have been read. */
export function readsRequestBody({ model, declaredMax }: ServiceUsage): boolean {
  return model.kind === "body" || declaredMax?.kind === "body";
}

/** Reports whether Headgate decides on a service's requests after it has seen their bodies. */
export function readsBodies({ usage }: MeasuredService): boolean {
  return usage !== undefined && readsRequestBody(usage);
}

/** Reports whether a service reports usage in its response bodies. */
export function observesBodies({ usage }: MeasuredService): boolean {
  return usage?.source.kind === "body";
}

interface MeasuredService {
  readonly usage: ServiceUsage | undefined;
}

/** Reports whether calls of a service are charged to a budget, if their model matches. */
export function isBudgeted(
  { name, usage }: { readonly name: string; readonly usage: ServiceUsage | undefined },
  { services }: Pick<BudgetPolicy, "services">,
): boolean {
  return usage !== undefined && (services === undefined || services.includes(name));
}
