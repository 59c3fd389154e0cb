import { isSeq } from "yaml";
import { refuseIdleWarning } from "../limits/rate-limit.js";
import { Block } from "../text/block.js";
import { readMaps } from "../text/defined-names.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import type { BudgetDraft } from "./budget-draft.js";
import { type BudgetPeriod, budget, type ReadBudget } from "./budget-form.js";
import { type BudgetList, budgetsMax } from "./budget-list.js";
import { prices } from "./price-form.js";

/** Reads `budgets` into the list; problems are reported. */
export function readBudgets(reader: NodeReader, written: Field, list: BudgetList): void {
  readMaps(reader, written, {
    expected: "a list of budgets: {name: ..., amount: ..., period: ...}",
    shape: budget.shape,
    most: `${budgetsMax} budgets`,
    add: (block) => {
      const draft = readBudget(block, list);
      return draft === undefined || list.add(draft);
    },
  });
}

/** Reads `prices` into the list; a second table is reported. */
export function readPrices(reader: NodeReader, written: Field, list: BudgetList): void {
  const place = reader.required(written, "a price table: {currency: USD, models: [...]}");
  const block = place && Block.at(reader, place, prices.shape);
  list.setPrices(block && prices.read(block), written.key, reader);
}

/** Reads a budget; undefined if its name, its amount or its period is wrong. */
function readBudget(block: Block, list: BudgetList): BudgetDraft | undefined {
  const { name, services, amount, overrides, period, timeZone, over, ...read } = budget.read(block);
  const isNew = name !== undefined && list.named.define(name.value, name.node, block.reader);
  refuseEmptyServices(block);
  const when = readPeriod(block, { period, timeZone });
  if (read.warnAt === undefined && block.isLeftOut("warnAt") && block.field("warnHeaders")) {
    refuseIdleWarning(block);
  }
  for (const { block: own, data } of overrides) refuseOtherLength(own, data, read.per.length);
  if (!isNew || amount === undefined || when === undefined) return undefined;
  const warning = { name: "x-headgate-budget-warning", value: name.value };
  return {
    budget: {
      ...read,
      name: name.value,
      services: services?.map(({ value }) => value),
      period: when,
      over: over === "refuse" ? undefined : over,
      warnHeaders: read.warnHeaders ?? [warning],
    },
    block,
    amount,
    overrides: overrides.flatMap(({ data: { values, amount: other } }) => {
      return values === undefined || other === undefined ? [] : [{ values, amount: other }];
    }),
    serviceNodes: services?.map(({ node }) => node) ?? [],
  };
}

function readPeriod(
  block: Block,
  { period, timeZone }: Pick<ReadBudget, "period" | "timeZone">,
): BudgetPeriod | undefined {
  if (period === undefined) return undefined;
  if (typeof period === "string")
    return { kind: "calendar", unit: period, timeZone: timeZone ?? "UTC" };
  return block.field("timeZone") === undefined
    ? period
    : block.refusePair("timeZone", "period: a duration");
}

function refuseOtherLength(
  block: Block,
  { values }: ReadBudget["overrides"][number]["data"],
  partCount: number,
): void {
  if (values === undefined || (values.length === partCount && partCount > 0)) return;
  block.report("values", {
    id: "HG299",
    message: `values of the override: ${values.length}, parts of the account: ${partCount}`,
    expected: partCount === 0 ? "a `per`, or no overrides" : "a value for each part of `per`",
  });
}

function refuseEmptyServices(block: Block): void {
  const written = block.field("services");
  const content = written && block.reader.contentOf(written);
  if (!isSeq(content) || content.items.length > 0) return;
  const message = '"services" is empty';
  block.report("services", {
    id: "HG125",
    message,
    expected: "services, or no `services` for all",
  });
}
