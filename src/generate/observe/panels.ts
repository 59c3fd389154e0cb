import type { Choice, Mark, Panel, Query, Unit } from "./dashboard.js";
import { type Matchers, matchersText } from "./promql.js";

/** Which Headgates a dashboard looks at, as their scrape's job is called. */
export const headgateChoice: Choice = {
  name: "job",
  label: "Headgate",
  query: "label_values(headgate_build_info, job)",
};

/** Which Envoys. */
export const envoyChoice: Choice = {
  name: "envoy",
  label: "Envoy",
  query: "label_values(envoy_server_live, job)",
};

/** Series of the chosen Headgates. */
export function own(metric: string, matchers: Matchers = {}): string {
  return chosen(metric, { job: "job", matchers });
}

/** Series of the chosen Envoys. */
export function envoys(metric: string, matchers: Matchers = {}): string {
  return chosen(metric, { job: "envoy", matchers });
}

function chosen(
  metric: string,
  { job, matchers }: { readonly job: string; readonly matchers: Matchers },
): string {
  const more = matchersText(matchers);
  return `${metric}{job=~"$${job}"${more === "" ? "" : `,${more}`}}`;
}

/** What a counter grows by in a second. */
function rate(series: string): string {
  return `rate(${series}[$__rate_interval])`;
}

/** A sum of what counters grow by in a second, by labels. */
export function sumRate(series: string, labels: readonly string[] = []): string {
  return `${sumBy(labels)}(${rate(series)})`;
}

/** The beginning of a sum over all series, or over those of the same labels. */
export function sumBy(labels: readonly string[]): string {
  return labels.length === 0 ? "sum" : `sum by (${labels.join(", ")}) `;
}

/** What a panel shows beside its queries. */
export interface PanelWords {
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
export function number(words: PanelWords, expr: string): Panel {
  return { kind: "number", ...words, queries: [{ expr, legend: "" }] };
}

function queriesOf(queries: Readonly<Record<string, string>>): readonly Query[] {
  return Object.entries(queries).map(([legend, expr]) => ({ expr, legend }));
}
