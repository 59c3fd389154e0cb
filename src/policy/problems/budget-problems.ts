import type { ProblemRow } from "./problem-row.js";

/** Mistakes in budgets, prices and the usage of services. */
export const budgetProblemRows = {
  HG290: {
    title: "A header cannot be set on requests to the upstream.",
    remedy: "Use a header of your own. Proxies use this one, or remove it.",
  },
  HG291: {
    title: "Two budgets have the same name.",
    remedy: "Give each budget its own name. What is spent is stored under it.",
  },
  HG292: {
    title: "An amount cannot be read.",
    remedy: "Write digits, a space and a unit: 500 USD, 1_000_000 tokens, 10 MiB, 3600 seconds.",
  },
  HG293: {
    title: "The unit of an amount is unknown.",
    remedy:
      "Use the currency of `prices`, or tokens, inputTokens, outputTokens, calls, bytes, KiB, " +
      "MiB, GiB, TiB, seconds or units.",
  },
  HG294: {
    title: "A budget in money needs a price table.",
    remedy: "Add `prices` to a file of the policy, or use a budget of tokens.",
  },
  HG295: {
    title: "A time from which prices hold cannot be read.",
    remedy: "Write a date such as 2026-01-01, or a time with an offset: 2026-01-01T00:00:00+01:00.",
  },
  HG296: {
    title: "A model has two prices from the same time on.",
    remedy: "Remove one of them, or give them different `validFrom` times.",
  },
  HG297: {
    title: "A policy has two price tables.",
    remedy: "Merge them. Budgets count in one currency.",
  },
  HG298: {
    title: "A budget refers to a service that the policy does not define, or that has no `usage`.",
    remedy: "Name a service under `services` that has `usage`. {} applies the defaults.",
  },
  HG299: {
    title: "An override of a budget does not have one value for each part of `per`.",
    remedy: "Write as many values as `per` has parts, in the same order; `*` matches any value.",
  },
  HG250: {
    title: "A path to a count of a response cannot be read.",
    remedy: "Write names joined by dots, such as usage.prompt_tokens.",
  },
  HG251: {
    title: "No budget charges the calls of a service that has `usage`.",
    remedy: "Add a budget, or keep `usage` for the usage report alone.",
    severity: "warning",
  },
  HG252: {
    title: "No response reports what a budget counts.",
    remedy:
      "Let `usage.from` of the service name the counts, or use another unit. Calls that report " +
      "nothing are charged as estimated.",
    severity: "warning",
  },
  HG253: {
    title: "No price matches a model of a budget in money.",
    remedy: "Add a price for the model. Until then, its calls cost the dearest price of the table.",
    severity: "warning",
  },
  HG254: {
    title: "An account of a budget holds less than one call is estimated to cost.",
    remedy:
      "Raise the amount, or lower `usage.estimate.initial`. Until costs are learned, calls of an " +
      "account pass one at a time.",
    severity: "warning",
  },
  HG255: {
    title: "A fallback names a cluster that no service of the policy has.",
    remedy: "Name a service or one of its `clusters`, or check that your configuration has it.",
    severity: "warning",
  },
  HG256: {
    title: "A budget sets a header that the policy reads from callers.",
    remedy:
      "Set another header. What callers send under the name is removed, so that it would no " +
      "longer tell accounts or models apart.",
    severity: "warning",
  },
  HG257: {
    title: "A service with `usage` learns its limit from response times.",
    remedy:
      "Set `admission.maxInFlight`, or a law in `concurrency`: `signal` follows a reading of the " +
      "upstream, such as its queue. Calls that take long because their answers are long look " +
      "like overload, and the learned limit refuses calls.",
    severity: "warning",
  },
} as const satisfies Record<string, ProblemRow>;
