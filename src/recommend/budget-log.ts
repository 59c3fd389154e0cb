import { budgetCost } from "../core/budgets/budget-cost.js";
import { PriceIndex } from "../core/budgets/price.js";
import { type Glob, globMatches, parseGlob } from "../core/collections/glob.js";
import { epochWindows, type Windows, windowAt } from "../core/limits/window.js";
import { calendarWindows } from "../decide/rate-limit/calendar.js";
import type { AccountPart } from "../policy/budgets/budget-form.js";
import { type BudgetPolicy, isBudgeted } from "../policy/budgets/budget-policy.js";
import type { Policy } from "../policy/policy.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import type { LoggedRequest, WantedFacts } from "../simulate/logged-request.js";
import type { ObservedBudget } from "./budget-proposal.js";

/** Maximum number of sums (account and period) kept for one budget. Further ones are left out. */
export const budgetSumsMax = 200_000;

/** Number of characters of a value that distinguish accounts. */
const valueCharsMax = 256;

/** Adds what budgets need to the facts read from each line. Indexes of headers do not change. */
export function withBudgetFacts(facts: WantedFacts, policy: Policy): WantedFacts {
  const budgets = budgetsOf(policy);
  if (budgets.length === 0) return facts;
  const parts = budgets.flatMap(({ budget }) => budget.per);
  const models = policy.services.flatMap(({ usage }) =>
    usage?.model.kind === "header" ? [usage.model.header] : [],
  );
  const headers = parts.flatMap((part) => (part.kind === "header" ? [part.header] : []));
  const isOfAddress = parts.some(({ kind }) => kind === "remoteAddress");
  return {
    ...facts,
    headers: [...new Set([...facts.headers, ...headers, ...models])],
    address: isOfAddress ? "wanted" : facts.address,
    usage: "wanted",
  };
}

interface KnownBudget {
  readonly budget: BudgetPolicy;
  readonly isKnown: boolean;
}

/** Returns a policy's budgets, and possible ones for services with `usage` but no budget. */
function budgetsOf({ budgets, services, prices }: Policy): readonly KnownBudget[] {
  const missing = services.flatMap((service): readonly BudgetPolicy[] => {
    const { usage, name, admission } = service;
    if (usage === undefined || budgets.some((one) => isBudgeted(service, one))) return [];
    const caller: AccountPart = admission?.caller ?? { kind: "remoteAddress" };
    const unit = { kind: prices === undefined ? "tokens" : "money" } as const;
    return (["day", "month"] as const).map((period) => ({
      name: `${name.slice(0, labelCharsMax - period.length - 1)}-${period}`,
      services: [name],
      models: [],
      per: [caller, { kind: "model" }],
      unit,
      amount: 0,
      overrides: [],
      period: { kind: "calendar", unit: period, timeZone: "UTC" },
      over: undefined,
      warnAt: undefined,
      warnHeaders: [],
      onStoreFailure: "local",
      whenLost: "release",
      isDryRun: false,
    }));
  });
  return [
    ...budgets.map((budget) => ({ budget, isKnown: true })),
    ...missing.map((budget) => ({ budget, isKnown: false })),
  ];
}

const labelCharsMax = 63;

/** Observes what calls cost according to a log, in bounded memory. */
export class BudgetLog {
  readonly #policy: Policy;
  readonly #headers: readonly string[];
  readonly #observers: readonly BudgetObserver[];

  /** @param headers the names of `LoggedRequest.headers` */
  constructor(policy: Policy, headers: readonly string[]) {
    this.#policy = policy;
    this.#headers = headers;
    const prices = policy.prices && new PriceIndex(policy.prices);
    this.#observers = budgetsOf(policy).map((one) => new BudgetObserver(one, prices));
  }

  take(request: LoggedRequest): void {
    if (request.wasLimited || this.#observers.length === 0) return;
    const service = this.#serviceOf(request.authority);
    if (service?.usage === undefined) return;
    const header = (name: string): string => request.headers[this.#headers.indexOf(name)] ?? "";
    const model = modelOf(service, request, header);
    for (const observer of this.#observers) {
      if (isBudgeted(service, observer.known.budget)) {
        observer.take(request, { service: service.name, model, header });
      }
    }
  }

  /** Returns what was observed of each budget, in the order of the policy. */
  finish(): readonly ObservedBudget[] {
    return this.#observers.map((observer) => observer.finish());
  }

  /** Returns sentences about calls that could not be used. */
  warnings(): readonly string[] {
    return this.#observers.flatMap((observer) => observer.warnings());
  }

  /** Returns the service of a host; a policy's only service without hosts gets all requests. */
  #serviceOf(authority: string): ServicePolicy | undefined {
    const found = authority === "" ? undefined : this.#policy.serviceIndex.at(authority)?.service;
    const [only, ...others] = this.#policy.services;
    if (found !== undefined || others.length > 0) return found;
    return only?.hosts.length === 0 ? only : undefined;
  }
}

function modelOf(
  { usage }: ServicePolicy,
  { usage: said }: LoggedRequest,
  header: (name: string) => string,
): string {
  if (usage?.model.kind === "fixed") return usage.model.model;
  const written = usage?.model.kind === "header" ? header(usage.model.header) : "";
  return written === "" ? (said?.model ?? "") : written;
}

interface CallParts {
  readonly service: string;
  readonly model: string;
  readonly header: (name: string) => string;
}

/** Sums up what one budget would have been charged. */
class BudgetObserver {
  readonly known: KnownBudget;
  readonly #prices: PriceIndex | undefined;
  readonly #models: readonly Glob[];
  readonly #overrides: readonly (readonly Glob[])[];
  /** By window and account. */
  readonly #sums = new Map<string, number>();
  #windows: Windows | undefined;
  #callCount = 0;
  #silentCount = 0;
  #leftOutCount = 0;
  #startUs = Number.POSITIVE_INFINITY;
  #endUs = 0;

  constructor(known: KnownBudget, prices: PriceIndex | undefined) {
    this.known = known;
    this.#prices = prices;
    this.#models = known.budget.models.map(parseGlob);
    this.#overrides = known.budget.overrides.map(({ values }) => values.map(parseGlob));
  }

  take({ timeUs, timing, usage, address }: LoggedRequest, parts: CallParts): void {
    const { budget } = this.known;
    const { model, service } = parts;
    if (this.#models.length > 0 && !this.#models.some((glob) => globMatches(glob, model))) return;
    const values = budget.per.map((part) => {
      const value = accountValue(part, { ...parts, service, address });
      return value.slice(0, valueCharsMax);
    });
    if (
      this.#overrides.some((globs) => globs.every((glob, i) => globMatches(glob, values[i] ?? "")))
    ) {
      return;
    }
    this.#callCount += 1;
    const durationMs = Math.round((timing?.durationUs ?? Number.NaN) / 1_000);
    const timed = durationMs >= 0 ? { durationMs } : {};
    const price = this.#prices?.find(model, timeUs / 1_000).price;
    const { cost, missing } = budgetCost(budget.unit, { ...timed, ...usage?.counts }, price);
    // If only a part is reported, that part counts.
    if (missing.length > 0 && cost === 0) {
      this.#silentCount += 1;
      return;
    }
    this.#startUs = Math.min(this.#startUs, timeUs);
    this.#endUs = Math.max(this.#endUs, timeUs);
    this.#add(JSON.stringify([this.#windowStart(timeUs), ...values]), cost);
  }

  finish(): ObservedBudget {
    const peaks = new Map<string, number>();
    for (const [key, sum] of this.#sums) {
      const account = key.slice(key.indexOf(","));
      peaks.set(account, Math.max(sum, peaks.get(account) ?? 0));
    }
    return {
      ...this.known,
      callCount: this.#callCount,
      silentCount: this.#silentCount,
      peaks: [...peaks.values()],
      spanUs: Math.max(0, this.#endUs - this.#startUs),
    };
  }

  warnings(): readonly string[] {
    if (this.#leftOutCount === 0) return [];
    const { name } = this.known.budget;
    return [`The budget ${name} has more than ${budgetSumsMax} accounts; the rest is left out.`];
  }

  #add(key: string, cost: number): void {
    const sum = this.#sums.get(key);
    if (sum === undefined && this.#sums.size >= budgetSumsMax) {
      this.#leftOutCount += 1;
      return;
    }
    this.#sums.set(key, (sum ?? 0) + cost);
  }

  /** Returns the window's start; a draining window counts as windows of its length. */
  #windowStart(timeUs: number): number {
    const { period } = this.known.budget;
    if (period.kind === "drain") return epochWindows(period.periodUs, timeUs).startUs;
    const known = this.#windows;
    if (known === undefined || timeUs < known.startUs || timeUs >= known.nextEndUs) {
      this.#windows = calendarWindows(period.unit, period.timeZone, timeUs);
    }
    return windowAt(this.#windows ?? epochWindows(1, timeUs), timeUs).startUs;
  }
}

function accountValue(
  part: AccountPart,
  { model, service, header, address }: CallParts & { readonly address: string },
): string {
  switch (part.kind) {
    case "header":
      return header(part.header);
    case "remoteAddress":
      return address;
    case "model":
      return model;
    case "service":
      return service;
  }
}
