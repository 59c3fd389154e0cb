import type { ParsedNode } from "yaml";
import { entriesMax } from "../../core/budgets/account.js";
import type { BudgetUnit } from "../../core/budgets/budget-cost.js";
import type { PriceTable } from "../../core/budgets/price.js";
import { quoteText } from "../problems/problem.js";
import { DefinedNames, placeText } from "../text/defined-names.js";
import { findNearestName } from "../text/nearest-name.js";
import type { NodeReader } from "../text/node-reader.js";
import type { PlacedValue } from "../text/object.js";
import { resolveAmount, type WrittenAmount } from "./amount.js";
import type { BudgetDraft, MeasuredService } from "./budget-draft.js";
import { lintBudgets } from "./budget-lints.js";
import type { BudgetPolicy } from "./budget-policy.js";

/** Maximum number of budgets of one policy. */
export const budgetsMax = 128;

/**
 * Maximum number of budgets that may charge one call of a service: the accounts of a reservation,
 * except for one that counts requests in flight.
 */
export const budgetsPerServiceMax = entriesMax - 1;

/** Data that budgets are checked against after all files are read. */
interface BudgetContext {
  /** Names of services, even if the rest of their definition is wrong. */
  readonly names: readonly string[];
  /** The valid services; undefined if something is wrong: then no service is checked. */
  readonly services: readonly { readonly name: string }[] | undefined;
  /** The valid services with `usage`. */
  readonly measured: readonly MeasuredService[];
  /** Whether a cluster is one of the policy's services. */
  readonly knowsCluster: (cluster: string) => boolean;
}

/** Budgets and prices of a policy. */
export interface BudgetPolicies {
  readonly budgets: readonly BudgetPolicy[];
  readonly prices: PriceTable | undefined;
}

/** The budgets and the price table of a policy while it is read, from all its files. */
export class BudgetList {
  readonly #drafts: BudgetDraft[] = [];
  readonly named = new DefinedNames("HG291", (name) => `a budget named ${name} is already defined`);
  #prices: PriceTable | undefined;
  #pricesPlace: string | undefined;

  /** Adds a budget at the end; false, and not added, when there are `budgetsMax` already. */
  add(draft: BudgetDraft): boolean {
    if (this.#drafts.length >= budgetsMax) return false;
    this.#drafts.push(draft);
    return true;
  }

  /**
   * Sets the price table. A second table is reported. If the table is wrong, and so undefined,
   * amounts of money are not checked.
   */
  setPrices(prices: PriceTable | undefined, node: ParsedNode, reader: NodeReader): void {
    if (this.#pricesPlace !== undefined) {
      const message = `\`prices\` are already defined in ${this.#pricesPlace}`;
      reader.report(node, { id: "HG297", message });
      return;
    }
    this.#pricesPlace = placeText(reader, node);
    this.#prices = prices;
  }

  /** Returns the budgets in the order of the files; reports those that do not fit the policy. */
  finish(context: BudgetContext): BudgetPolicies {
    const { services, measured, knowsCluster } = context;
    const prices = this.#prices;
    const isKnown = this.#pricesPlace === undefined || prices !== undefined;
    const read = this.#drafts.flatMap((draft) => {
      refuseStrangers(draft, context);
      const budget = isKnown ? resolve(draft, prices) : undefined;
      return budget === undefined ? [] : [{ budget, draft }];
    });
    for (const { name } of measured) this.#refuseMany(name);
    if (services !== undefined) {
      lintBudgets({ budgets: read, services: measured, prices, knowsCluster });
    }
    return { budgets: read.map(({ budget }) => budget), prices };
  }

  #refuseMany(service: string): void {
    const charging = this.#drafts.filter(({ budget: { services } }) => {
      return services === undefined || services.includes(service);
    });
    const extra = charging[budgetsPerServiceMax];
    extra?.block.report("name", {
      id: "HG160",
      message: `the service ${quoteText(service)} has more than ${budgetsPerServiceMax} budgets`,
      expected: `at most ${budgetsPerServiceMax} budgets for each service`,
    });
  }
}

function refuseStrangers(
  { budget, block, serviceNodes }: BudgetDraft,
  { names, services, measured }: BudgetContext,
): void {
  budget.services?.forEach((name, index) => {
    const node = serviceNodes[index] ?? block.fields.node;
    if (!names.includes(name)) {
      const message = `the policy has no service named ${quoteText(name)}`;
      const suggestion = findNearestName(name, names);
      block.reader.reportContent(node, { id: "HG298", message, suggestion });
    } else if (services !== undefined && !measured.some((one) => one.name === name)) {
      const message = `the service ${quoteText(name)} has no \`usage\``;
      const expected = "usage: {} at the service, for the defaults";
      block.reader.reportContent(node, { id: "HG298", message, expected });
    }
  });
}

/** Undefined if an amount is wrong, which is reported. */
function resolve(draft: BudgetDraft, prices: PriceTable | undefined): BudgetPolicy | undefined {
  const { budget, block } = draft;
  const whole = resolveAmount(draft.amount, block.reader, prices);
  if (whole === undefined) return undefined;
  const overrides = draft.overrides.flatMap(({ values, amount }) => {
    const read = resolveAmount(amount, block.reader, prices);
    if (read === undefined) return [];
    if (read.unit.kind !== whole.unit.kind) refuseOtherUnit(draft, amount, whole.unit);
    return [{ values, amount: read.count }];
  });
  return { ...budget, unit: whole.unit, amount: whole.count, overrides };
}

function refuseOtherUnit(
  { block, amount }: BudgetDraft,
  { value, node }: PlacedValue<WrittenAmount>,
  unit: BudgetUnit,
): void {
  block.reader.reportContent(node, {
    id: "HG293",
    message: `${quoteText(value.unit)} is not the unit of the budget`,
    expected: unit.kind === "money" ? amount.value.unit : unit.kind,
  });
}
