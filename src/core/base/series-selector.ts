/** Selects series of a metrics page. */
export interface SeriesSelector {
  /** The metric's name. */
  readonly metric: string;
  /** All must match. A label that a series lacks counts as empty. */
  readonly matchers: readonly LabelMatcher[];
}

/** A value that a label must have, or must not have. */
interface LabelMatcher {
  readonly label: string;
  readonly value: string;
  readonly isEqual: boolean;
}

/** Maximum number of matchers in one selector. */
export const labelMatchersMax = 16;

/** Names of metrics and labels. Source: Prometheus, "Data model". */
const metricPattern = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const matcherPattern = /^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(!?=)\s*"((?:[^"\\\n]|\\["\\n])*)"\s*(,|$)/;

/**
 * Parses a PromQL selector with `=` and `!=` only: a page has no index, so an arbitrary regular
 * expression would run over all of it.
 *
 * Example: `kafka_consumergroup_lag{consumergroup="linearizer",topic!="audit"}`.
 *
 * @returns undefined if the text is not a selector
 */
export function parseSeriesSelector(text: string): SeriesSelector | undefined {
  const metric = metricPattern.exec(text)?.[0];
  if (metric === undefined) return undefined;
  const braces = text.slice(metric.length).trim();
  if (braces === "") return { metric, matchers: [] };
  if (!braces.startsWith("{") || !braces.endsWith("}")) return undefined;
  const matchers: LabelMatcher[] = [];
  let rest = braces.slice(1, -1);
  while (rest.trim() !== "") {
    const found = matcherPattern.exec(rest);
    if (found === null || matchers.length >= labelMatchersMax) return undefined;
    const [whole, label = "", sign, value = ""] = found;
    matchers.push({ label, value: unescapeLabel(value), isEqual: sign === "=" });
    rest = rest.slice(whole.length);
  }
  return { metric, matchers };
}

/** Reports whether a selector matches a series of its metric with these labels. */
export function selects(
  { matchers }: SeriesSelector,
  labels: ReadonlyMap<string, string>,
): boolean {
  return matchers.every(
    ({ label, value, isEqual }) => ((labels.get(label) ?? "") === value) === isEqual,
  );
}

/** Unescapes a label's value as quoted. Source: Prometheus, "Exposition formats". */
export function unescapeLabel(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
}
