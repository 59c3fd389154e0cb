import type { Choice, Mark, Panel, Query, Unit } from "./dashboard.js";
import { type Matchers, matchersText, withEnvoyLabel } from "./promql.js";

/** Which Headgates a dashboard looks at: as their scrape's job is called, and which of them. */
export const headgateChoices: readonly Choice[] = [
  { name: "job", label: "Headgate", query: "label_values(headgate_build_info, job)" },
  {
    name: "instance",
    label: "Instance",
    query: 'label_values(headgate_build_info{job=~"$job"}, instance)',
  },
];

/** Which Envoys. */
export const envoyChoices: readonly Choice[] = [
  { name: "envoy", label: "Envoy", query: "label_values(envoy_server_live, job)" },
  {
    name: "proxy",
    label: "Envoy instance",
    query: 'label_values(envoy_server_live{job=~"$envoy"}, instance)',
  },
];

/** Series of the chosen Headgates. */
export function own(metric: string, matchers: Matchers = {}): string {
  return chosen(metric, { job: "job", instance: "instance", matchers });
}

/** Series of the chosen Envoys. */
export function envoys(metric: string, matchers: Matchers = {}): string {
  return chosen(metric, { job: "envoy", instance: "proxy", matchers });
}

function chosen(
  metric: string,
  of: { readonly job: string; readonly instance: string; readonly matchers: Matchers },
): string {
  const more = matchersText(of.matchers);
  const variables = `job=~"$${of.job}",instance=~"$${of.instance}"`;
  return `${metric}{${variables}${more === "" ? "" : `,${more}`}}`;
}

/** What a counter grows by in a second. */
export function rate(series: string): string {
  return `rate(${series}[$__rate_interval])`;
}

/** A sum of what counters grow by in a second, by labels. */
export function sumRate(series: string, labels: readonly string[] = []): string {
  return `${sumBy(labels)}(${rate(series)})`;
}

/** Answers in a second, by the class of their status. */
export function byClass(series: string): string {
  const label = "envoy_response_code_class";
  return `${sumBy([label])}(${withEnvoyLabel(rate(series), label)})`;
}

/** The beginning of a sum over all series, or over those of the same labels. */
export function sumBy(labels: readonly string[]): string {
  return labels.length === 0 ? "sum" : `sum by (${labels.join(", ")}) `;
}

/** What a panel shows beside its queries. */
interface PanelWords {
  readonly title: string;
  readonly about: string;
  readonly unit: Unit;
  readonly marks?: readonly Mark[];
  readonly columns?: number;
}

/** Lines over time: queries by what their lines are called. */
export function lines(words: PanelWords, queries: Readonly<Record<string, string>>): Panel {
  return { kind: "lines", ...words, queries: queriesOf(queries) };
}

/** The same, one above the other. */
export function stacked(words: PanelWords, queries: Readonly<Record<string, string>>): Panel {
  return { kind: "stacked", ...words, queries: queriesOf(queries) };
}

/** The newest number. */
export function numberPanel(words: PanelWords, expr: string): Panel {
  return { kind: "number", ...words, queries: [{ expr, legend: "" }] };
}

function queriesOf(queries: Readonly<Record<string, string>>): readonly Query[] {
  return Object.entries(queries).map(([legend, expr]) => ({ expr, legend }));
}
