import type { Choice, Mark, Panel, Query, Unit } from "./dashboard.js";
import { type Matchers, matchersText, withEnvoyLabel } from "./promql.js";

/** Variables that select Headgates: by the job of their scrape, and by instance. */
export const headgateChoices: readonly Choice[] = [
  { name: "job", label: "Headgate", query: "label_values(headgate_build_info, job)" },
  {
    name: "instance",
    label: "Instance",
    query: 'label_values(headgate_build_info{job=~"$job"}, instance)',
  },
];

/** Variables that select Envoys. */
export const envoyChoices: readonly Choice[] = [
  { name: "envoy", label: "Envoy", query: "label_values(envoy_server_live, job)" },
  {
    name: "proxy",
    label: "Envoy instance",
    query: 'label_values(envoy_server_live{job=~"$envoy"}, instance)',
  },
];

/** Returns the series of the selected Headgates. */
export function own(metric: string, matchers: Matchers = {}): string {
  return chosen(metric, { job: "job", instance: "instance", matchers });
}

/** Returns the series of the selected Envoys. */
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

/** Returns the rate of a counter per second. */
export function rate(series: string): string {
  return `rate(${series}[$__rate_interval])`;
}

/** Returns the sum of the rates of counters per second, by labels. */
export function sumRate(series: string, labels: readonly string[] = []): string {
  return `${sumBy(labels)}(${rate(series)})`;
}

/** Returns responses per second, by the class of their status. */
export function byClass(series: string): string {
  const label = "envoy_response_code_class";
  return `${sumBy([label])}(${withEnvoyLabel(rate(series), label)})`;
}

/** Returns the start of a sum over all series, or by labels. */
export function sumBy(labels: readonly string[]): string {
  return labels.length === 0 ? "sum" : `sum by (${labels.join(", ")}) `;
}

/** The properties of a panel, except its queries. */
interface PanelWords {
  readonly title: string;
  readonly about: string;
  readonly unit: Unit;
  readonly marks?: readonly Mark[];
  readonly columns?: number;
}

/** Returns a panel of lines over time. Queries are keyed by their legend. */
export function lines(words: PanelWords, queries: Readonly<Record<string, string>>): Panel {
  return { kind: "lines", ...words, queries: queriesOf(queries) };
}

/** Returns the same, with lines stacked on each other. */
export function stacked(words: PanelWords, queries: Readonly<Record<string, string>>): Panel {
  return { kind: "stacked", ...words, queries: queriesOf(queries) };
}

/** Returns a panel with the newest number. */
export function numberPanel(words: PanelWords, expr: string): Panel {
  return { kind: "number", ...words, queries: [{ expr, legend: "" }] };
}

function queriesOf(queries: Readonly<Record<string, string>>): readonly Query[] {
  return Object.entries(queries).map(([legend, expr]) => ({ expr, legend }));
}
