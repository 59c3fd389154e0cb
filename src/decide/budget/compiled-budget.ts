import { type AccountKey, type AccountLaw, amountMax } from "../../core/budgets/account.js";
import { accountKey, accountValueLengthMax } from "../../core/budgets/account-key.js";
import type { TopUps } from "../../core/budgets/top-up.js";
import { GenerationalMap } from "../../core/collections/generational-map.js";
import { type Glob, globMatches, parseGlob } from "../../core/collections/glob.js";
import type { AccountPart } from "../../policy/budgets/budget-form.js";
import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import type { RequestFacts } from "../../policy/cel/request-facts.js";
import { requestKey } from "../../policy/services/callers.js";
import { calendarWindows } from "../rate-limit/calendar.js";
import type { BudgetCounts } from "./budget-counts.js";

/** Maximum number of cached keys, for accounts with one value. */
const accountsMax = 20_000;

/** A request whose account is looked up. */
export interface AccountRequest extends RequestFacts {
  readonly service: string;
  readonly model: string;
}

/** A budget of the active policy, ready for requests. */
export class CompiledBudget {
  readonly policy: BudgetPolicy;
  readonly counts: BudgetCounts;
  readonly #digest: (text: string) => string;
  readonly #models: readonly Glob[];
  readonly #overrides: readonly { readonly values: readonly Glob[]; readonly amount: number }[];
  readonly #onlyAccount: AccountKey | undefined;
  /** By value, if accounts have one value. */
  readonly #accounts = new GenerationalMap<string, AccountKey>(accountsMax);
  #law: AccountLaw | undefined;

  /** @param digest a cryptographic hash in hexadecimal */
  constructor(policy: BudgetPolicy, counts: BudgetCounts, digest: (text: string) => string) {
    this.policy = policy;
    this.counts = counts;
    this.#digest = digest;
    this.#models = policy.models.map(parseGlob);
    this.#overrides = policy.overrides.map(({ values, amount }) => ({
      values: values.map(parseGlob),
      amount,
    }));
    this.#onlyAccount = policy.per.length === 0 ? accountKey(policy.name, [], digest) : undefined;
  }

  /**
   * Whether calls of a model count. Calls whose model could not be read always count: otherwise, a
   * body that only the upstream can read would bypass every budget.
   */
  appliesTo(model: string): boolean {
    if (this.#models.length === 0 || model === "") return true;
    return this.#models.some((glob) => globMatches(glob, model));
  }

  /** The values of the account that a request is charged to. A missing value is empty. */
  valuesOf(request: AccountRequest): readonly string[] {
    return this.policy.per.map((part) => partValue(part, request));
  }

  accountOf(values: readonly string[]): AccountKey {
    if (this.#onlyAccount !== undefined) return this.#onlyAccount;
    const [value = ""] = values;
    const isCached = values.length === 1 && value.length <= accountValueLengthMax;
    const known = isCached ? this.#accounts.get(value) : undefined;
    if (known !== undefined) return known;
    const account = accountKey(this.policy.name, values, this.#digest);
    if (isCached && this.#accounts.wantsMore()) this.#accounts.set(value, account);
    return account;
  }

  /** Returns the capacity of an account: the first matching override, and what was topped up. */
  capacityOf(values: readonly string[], topUps: TopUps, nowMs: number): number {
    const { name, amount } = this.policy;
    const override =
      this.#overrides.length === 0
        ? undefined
        : this.#overrides.find((one) =>
            one.values.every((glob, i) => globMatches(glob, values[i] ?? "")),
          );
    return Math.min((override?.amount ?? amount) + topUps.topUpOf(name, values, nowMs), amountMax);
  }

  /** @param nowUs microseconds since 1970 */
  lawAt(nowUs: number): AccountLaw {
    const known = this.#law;
    if (known !== undefined && known.kind !== "window") return known;
    if (known !== undefined && nowUs >= known.windows.startUs && nowUs < known.windows.endUs)
      return known;
    const { period } = this.policy;
    const law: AccountLaw =
      period.kind === "drain"
        ? { kind: "drain", periodUs: period.periodUs }
        : { kind: "window", windows: calendarWindows(period.unit, period.timeZone, nowUs) };
    this.#law = law;
    return law;
  }
}

function partValue(part: AccountPart, request: AccountRequest): string {
  switch (part.kind) {
    case "model":
      return request.model;
    case "service":
      return request.service;
    default:
      return requestKey(part, request);
  }
}
