/**
 * Quotes a text as a PromQL string. What Grafana would read as one of its variables is escaped too,
 * and PromQL reads the escape as the same character.
 *
 * Example: `a"$b` is `"a\"\x24b"`. Source: Prometheus, "Querying basics", string literals.
 */
export function quoted(text: string): string {
  const escaped = text
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("\n", "\\n")
    .replaceAll("$", "\\x24")
    .replaceAll("[[", "\\x5b[");
  return `"${escaped}"`;
}

/** Returns a regular expression that only matches the text itself, without a backslash. */
export function literalPattern(text: string): string {
  return text.replaceAll(/[.*+?()|[\]{}$]/g, "[$&]").replaceAll(/[\\^]/g, ".");
}

/** Matchers of a selector, by label: a text, or a list of texts of which any matches. */
export interface Matchers {
  readonly [label: string]: string | readonly string[];
}

/** Returns the series of a metric with these labels. A list matches any of its texts. */
export function series(metric: string, matchers: Matchers = {}): string {
  return `${metric}{${matchersText(matchers)}}`.replace(/\{\}$/, "");
}

/**
 * Returns matchers of clusters by name. The labels of Istio's Envoys lack `envoy_`: the label that
 * a series does not have counts as empty.
 *
 * Source: Istio, envoy_bootstrap.json, `stats_tags`.
 */
export function clustersNamed(names: readonly string[]): Matchers {
  return { envoy_cluster_name: [...names, ""], cluster_name: [...names, ""] };
}

/** Adds an Envoy label to series of Istio's Envoys, which name it differently. */
export function withEnvoyLabel(vector: string, label: `envoy_${string}`): string {
  const ofIstio = label.slice("envoy_".length);
  return `label_replace(${vector}, "${label}", "$1", "${ofIstio}", "(.+)")`;
}

/** Formats matchers as between braces. */
export function matchersText(matchers: Matchers): string {
  return Object.entries(matchers)
    .map(([label, wanted]) =>
      typeof wanted === "string"
        ? `${label}=${quoted(wanted)}`
        : `${label}=~${quoted([...new Set(wanted.map(namePattern))].join("|"))}`,
    )
    .join(",");
}

/** Matches a name. If Envoy Gateway names a cluster by an HTTPRoute's rule, matches all rules. */
function namePattern(name: string): string {
  return literalPattern(name).replace(
    /^(httproute\/.+\/rule\/)\d+(\/backend\/\d+)?$/,
    "$1[0-9]+$2",
  );
}

/**
 * Parts of alerts' queries. They do not depend on a particular Prometheus: sums are kept separate
 * by `namespace` and `job`, whatever these are.
 */
const fleetLabels: readonly string[] = ["namespace", "job"];

/** Returns an aggregation by fleet, and by further labels. */
export function by(how: "sum" | "max" | "min" | "count", labels: readonly string[] = []): string {
  return `${how} by (${[...fleetLabels, ...labels].join(", ")})`;
}

/** Returns the rate of a fleet's counters per second, over five minutes. */
export function grows(series: string, labels: readonly string[] = []): string {
  return `${by("sum", labels)} (rate(${series}[5m]))`;
}
