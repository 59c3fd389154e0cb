import type { LimitUnit } from "../../core/limits/limit.js";
import { timeZone } from "../limits/algorithm.js";
import { budgetOver, warnAt, warnHeaders } from "../limits/over.js";
import { type LimitPeriod, period } from "../limits/rate-limit.js";
import { any, flag, readBy, ruledText, words } from "../text/form.js";
import { field, inner, innerBlock, items, object, placed, wordOr } from "../text/object.js";
import { budgetName, headerName, label } from "../text/service-texts.js";
import { valueRule } from "../text/text-rules.js";
import { amount } from "./amount.js";
import { modelPattern } from "./model-pattern.js";

/** Maximum number of services, and of model patterns, of one budget. */
export const budgetItemsMax = 64;

/** Maximum number of parts of one account. */
export const accountPartsMax = 8;

/** Maximum number of overrides of one budget. */
export const budgetOverridesMax = 1_000;

/** What distinguishes the accounts of a budget. A request without it has an empty value. */
export type AccountPart =
  | { readonly kind: "remoteAddress" }
  | { readonly kind: "header"; readonly header: string }
  | { readonly kind: "model" }
  | { readonly kind: "service" };

/** When spent amounts expire. */
export type BudgetPeriod =
  | {
      readonly kind: "calendar";
      readonly unit: "hour" | "day" | "week" | "month" | "year";
      /** A name in the IANA time zone database. Default: UTC. */
      readonly timeZone: string;
    }
  /** Drains continuously: whole seconds. */
  | { readonly kind: "drain"; readonly periodUs: number };

const headerPart = object(
  { title: "a part of an account", docs: "The value of a request header." },
  {
    header: field(headerName, "The header's name, in lower case.", { needs: "a header's name" }),
  },
  {
    data: ({ header }): AccountPart | undefined =>
      header === undefined ? undefined : { kind: "header", header },
  },
);

const partWords = ["model", "remoteAddress", "service"] as const;

const partOrWord = wordOr(
  partWords,
  inner(headerPart, "{header: x-team}"),
  "model, remoteAddress, service or {header: x-team}",
);

const part = readBy<AccountPart>(partOrWord, (reader, place) => {
  const read = partOrWord.read(reader, place);
  return typeof read === "string" ? { kind: read } : read;
});

const override = object(
  { title: "an override of a budget", docs: "Another amount for some accounts." },
  {
    values: field(
      items(ruledText(valueRule), {
        expected: 'a list such as [research, "*"]',
        max: accountPartsMax,
      }),
      "A value for each part of `per`, in order. `*` stands for any text.",
      { needs: 'a list such as [research, "*"]' },
    ),
    amount: field(amount, "The amount, in the unit of the budget.", {
      needs: "an amount in the unit of the budget",
    }),
  },
);

/** Periods of the calendar. */
const calendarUnits = ["hour", "day", "week", "month", "year"] as const satisfies LimitUnit[];

const calendarWords = words(...calendarUnits);

type ReadPeriod = Exclude<BudgetPeriod, { kind: "calendar" }> | (typeof calendarUnits)[number];

const budgetPeriod = readBy<ReadPeriod>(any(calendarWords, period), (reader, place) => {
  const content = reader.contentOf(place);
  const written = content !== undefined && "value" in content ? String(content.value) : "";
  // A text that begins with a letter is meant as a calendar period.
  if (/^[A-Za-z]/.test(written)) {
    return reader.readChoice(place, calendarUnits, {
      id: "HG142",
      what: "a period of the calendar",
      expected: "hour, day, week, month or year, or a duration such as 1m",
    });
  }
  const read: LimitPeriod | undefined = period.read(reader, place);
  return read && { kind: "drain", periodUs: read.periodUs };
});

/** An item of `budgets`. */
export const budget = object(
  {
    title: "a budget",
    docs: "An amount that calls reserve before they run, and that they are charged to.",
  },
  {
    name: field(placed(budgetName), "The name in metrics, commands and stored accounts.", {
      needs: "the budget's name",
    }),
    services: field(
      items(placed(label), { expected: "a list of services", max: budgetItemsMax, min: 1 }),
      "Services whose calls count. Default: every service with `usage`.",
    ),
    models: field(
      items(modelPattern, { expected: "a list of models, such as [gpt-*]", max: budgetItemsMax }),
      "Models whose calls count; `*` stands for any text. Default: all.",
      { default: [] },
    ),
    per: field(
      items(part, {
        expected: "a list such as [{header: x-team}, model]",
        max: accountPartsMax,
      }),
      "What tells accounts apart: each combination of values has the whole amount. A request " +
        "without a value counts for the empty one. Default: one account for all.",
      { default: [] },
    ),
    amount: field(
      amount,
      "What one account may spend in a period: 500 USD, 1_000_000 tokens, inputTokens or " +
        "outputTokens, 100 calls, 10 MiB of responses, 3600 seconds, or 50 units of the " +
        "service's own.",
      { larger: "looser", needs: "an amount, such as 500 USD or 1_000_000 tokens" },
    ),
    overrides: field(
      items(innerBlock(override), {
        expected: "a list of overrides: {values: [research], amount: 2000 USD}",
        max: budgetOverridesMax,
      }),
      "Other amounts for some accounts. The first that matches counts.",
      { default: [] },
    ),
    period: field(
      budgetPeriod,
      "`hour`, `day`, `week`, `month` or `year`: the amount is new in each of them. A duration " +
        "such as 1m: what is spent drains continuously within it.",
      { needs: "hour, day, week, month or year, or a duration such as 1m" },
    ),
    timeZone: field(
      timeZone,
      "The time zone in which periods of the calendar begin. Default: UTC.",
    ),
    over: field(
      wordOr(
        ["refuse"],
        inner(budgetOver),
        "refuse, or a map: {annotate: {headers: {x-budget: exceeded}}}",
      ),
      "What happens to calls that do not fit.",
      { default: "refuse", added: "looser" },
    ),
    warnAt: field(
      warnAt,
      "The used ratio from which calls have `warnHeaders`, reservations included. Default: never.",
      { larger: "different" },
    ),
    warnHeaders: field(
      warnHeaders,
      "Headers of requests to the upstream from `warnAt` on. Default: " +
        "`x-headgate-budget-warning` with the budget's name.",
    ),
    onStoreFailure: field(
      words("local", "allow", "deny"),
      "Without the store, `local`: each replica counts for itself, in its part of the amount. " +
        "`allow`: calls pass, and are charged when the store is back. `deny`: calls are refused.",
      { default: "local" },
    ),
    whenLost: field(
      words("release", "charge"),
      "What becomes of the reservations of a replica that died: they are free again, or charged " +
        "as estimated.",
      { default: "release" },
    ),
    dryRun: field(flag, "Reserves, charges and reports, but never refuses.", {
      as: "isDryRun",
      default: false,
    }),
  },
);

/** `budgets` as it is written, field by field. */
export type ReadBudget = typeof budget.defaults;
