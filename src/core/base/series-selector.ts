/** Which series of a metrics page are meant. */
export interface SeriesSelector {
  /** The metric's name. */
  readonly metric: string;
  /** All must hold; a label that a series lacks counts as empty. */
  readonly matchers: readonly LabelMatcher[];
}

/** What a label has to be, or not to be. */
interface LabelMatcher {
  readonly label: string;
  readonly value: string;
  readonly isEqual: boolean;
}

/** Matchers of one selector. */
export const labelMatchersMax = 16;

/** Source: Prometheus, "Data model": names of metrics and labels. */
const metricPattern = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const matcherPattern = /^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(!?=)\s*"((?:[^"\\\n]|\\["\\n])*)"\s*(,|$)/;

/**
 * Reads a selector as PromQL has it, with `=` and `!=`: a page has no index, and a regular
 * expression of somebody's making would be run over all of it.
 *
 * Example: `kafka_consumergroup_lag{consumergroup="linearizer",topic!="audit"}`.
 *
 * @returns undefined where the text is none
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

/** Whether a series of the selector's metric is meant. */
export function selects(
  { matchers }: SeriesSelector,
  labels: ReadonlyMap<string, string>,
): boolean {
  return matchers.every(
    ({ label, value, isEqual }) => ((labels.get(label) ?? "") === value) === isEqual,
  );
}

/** A label's value between its quotes. Source: Prometheus, "Exposition formats". */
export function unescapeLabel(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
}
