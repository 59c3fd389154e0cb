import { priorities } from "../../core/admission/priority.js";
import { quoteText } from "../problems/problem.js";
import type { Finding } from "../problems/problem-log.js";
import { parseDurationMs } from "../text/duration.js";
import { findNearestName } from "../text/nearest-name.js";

/** Metrics of objectives. Ratios are of offered requests, except for `goodput`. */
export const objectiveMetrics = {
  goodput: { unit: "ratio", docs: "Requests served in time, of what the workers could serve." },
  served: { unit: "ratio", docs: "Requests served in time, of all offered." },
  refused: { unit: "ratio", docs: "Requests that Headgate refused." },
  failed: { unit: "ratio", docs: "Requests that the service failed." },
  abandoned: { unit: "ratio", docs: "Requests whose callers stopped waiting." },
  late: { unit: "ratio", docs: "Requests served after their deadline." },
  attempts: { unit: "count", docs: "Attempts for each request." },
  mean: { unit: "ms", docs: "The mean latency of served requests." },
  p50: { unit: "ms", docs: "The median latency of served requests." },
  p95: { unit: "ms", docs: "The 95th percentile." },
  p99: { unit: "ms", docs: "The 99th percentile." },
} as const;

/** One of `objectiveMetrics`. */
export type ObjectiveMetric = keyof typeof objectiveMetrics;

/** How a value is compared with a bound. */
export type ObjectiveOperator = ">=" | "<=" | ">" | "<";

/** A required result of a run. */
export interface Objective {
  /** As written. */
  readonly text: string;
  /** Requests that it covers; undefined: all. */
  readonly of: { readonly kind: "class" | "caller" | "service"; readonly name: string } | undefined;
  readonly metric: ObjectiveMetric;
  readonly operator: ObjectiveOperator;
  /** A ratio, a count or milliseconds, depending on the metric. */
  readonly bound: number;
}

/** Names that an objective may begin with. */
export interface ObjectiveNames {
  readonly callers: readonly string[];
  readonly services: readonly string[];
}

const form = /^(?:(.+)\.)?([A-Za-z0-9]+) *(>=|<=|>|<) *([0-9.]+ *%?|[0-9a-z]+)$/;

const expected = 'a metric and a bound, such as "goodput >= 0.95" or "critical.p99 <= 300ms"';

/** Reads an objective: `critical.served >= 0.999`. */
export function parseObjective(text: string, names: ObjectiveNames): Objective | Finding {
  const [, name, metric = "", operator, written = ""] = form.exec(text) ?? [];
  if (!isOperator(operator)) {
    return { id: "HG124", message: `${quoteText(text)} is not an objective`, expected };
  }
  if (!isMetric(metric)) {
    const metrics = Object.keys(objectiveMetrics);
    return {
      id: "HG133",
      message: `${quoteText(metric)} is not a metric`,
      expected: metrics.join(", "),
      suggestion: findNearestName(metric, metrics),
    };
  }
  const of = name === undefined ? undefined : whose(name, names);
  if (name !== undefined && of === undefined) {
    const known = [...priorities, ...names.services, ...names.callers];
    return {
      id: "HG133",
      message: `${quoteText(name)} is not a class, a service or a caller`,
      expected: known.join(", "),
      suggestion: findNearestName(name, known),
    };
  }
  if (metric === "goodput" && of !== undefined && of.kind !== "service") {
    const message = `goodput is of a service or of all: ${quoteText(text)}`;
    return { id: "HG133", message, expected: `${quoteText(`${name}.served`)}, of requests` };
  }
  const { unit } = objectiveMetrics[metric];
  const bound = unit === "ms" ? parseDurationMs(written) : numberOf(written);
  if (bound === undefined || (unit === "ratio" && bound > 1)) {
    const what = { ms: "a duration such as 300ms", ratio: "0 to 1, or a percentage" };
    const wanted = unit === "count" ? "a number" : what[unit];
    return { id: "HG124", message: `${quoteText(written)} is no bound here`, expected: wanted };
  }
  return { text, of, metric, operator, bound };
}

/** Reports whether a value meets an objective's bound; an unknown value does not. */
export function meetsObjective(
  { operator, bound }: Pick<Objective, "operator" | "bound">,
  actual: number | undefined,
): boolean {
  if (actual === undefined || Number.isNaN(actual)) return false;
  switch (operator) {
    case ">=":
      return actual >= bound;
    case "<=":
      return actual <= bound;
    case ">":
      return actual > bound;
    case "<":
      return actual < bound;
  }
}

function isOperator(text: string | undefined): text is ObjectiveOperator {
  return text === ">=" || text === "<=" || text === ">" || text === "<";
}

function isMetric(text: string): text is ObjectiveMetric {
  return Object.hasOwn(objectiveMetrics, text);
}

function whose(name: string, { callers, services }: ObjectiveNames): Objective["of"] {
  if (priorities.some((priority) => priority === name)) return { kind: "class", name };
  if (services.includes(name)) return { kind: "service", name };
  return callers.includes(name) ? { kind: "caller", name } : undefined;
}

function numberOf(written: string): number | undefined {
  const [, digits, percent] = /^([0-9]+(?:\.[0-9]+)?) *(%?)$/.exec(written) ?? [];
  if (digits === undefined) return undefined;
  return percent === "%" ? Number(digits) / 100 : Number(digits);
}
