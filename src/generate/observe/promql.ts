/**
 * A text as PromQL writes it between quotes. What Grafana would take for one of its variables is
 * escaped as well, which PromQL reads as the character that it is.
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

/** A text as a regular expression that only means itself, without a backslash. */
export function literalPattern(text: string): string {
  return text.replaceAll(/[.*+?()|[\]{}$]/g, "[$&]").replaceAll(/[\\^]/g, ".");
}

/** A selector's matchers, by label: a text, or a list of texts of which any matches. */
export interface Matchers {
  readonly [label: string]: string | readonly string[];
}

/** A metric's series with these labels; a list stands for any of its texts. */
export function series(metric: string, matchers: Matchers = {}): string {
  return `${metric}{${matchersText(matchers)}}`.replace(/\{\}$/, "");
}

/**
 * Matchers of clusters of these names. Istio's Envoys call labels without `envoy_`: where one of
 * the two is not there, it counts as empty.
 *
 * Source: Istio, envoy_bootstrap.json, `stats_tags`.
 */
export function clustersNamed(names: readonly string[]): Matchers {
  return { envoy_cluster_name: [...names, ""], cluster_name: [...names, ""] };
}

/** Series with a label of Envoy's, also those of Istio's Envoys, which call it otherwise. */
export function withEnvoyLabel(vector: string, label: `envoy_${string}`): string {
  const ofIstio = label.slice("envoy_".length);
  return `label_replace(${vector}, "${label}", "$1", "${ofIstio}", "(.+)")`;
}

/** Matchers as they stand between braces. */
export function matchersText(matchers: Matchers): string {
  return Object.entries(matchers)
    .map(([label, wanted]) =>
      typeof wanted === "string"
        ? `${label}=${quoted(wanted)}`
        : `${label}=~${quoted([...new Set(wanted.map(namePattern))].join("|"))}`,
    )
    .join(",");
}

/** A name; where Envoy Gateway calls a cluster by an HTTPRoute's rule, those of all its rules. */
function namePattern(name: string): string {
  return literalPattern(name).replace(
    /^(httproute\/.+\/rule\/)\d+(\/backend\/\d+)?$/,
    "$1[0-9]+$2",
  );
}

/**
 * The pieces of alerts' queries. Nothing of a Prometheus's own is in them: what is summed up stays
 * apart by `namespace` and `job`, whatever they are.
 */
const fleetLabels: readonly string[] = ["namespace", "job"];

/** An aggregation over each fleet, and over more labels. */
export function by(how: "sum" | "max" | "min" | "count", labels: readonly string[] = []): string {
  return `${how} by (${[...fleetLabels, ...labels].join(", ")})`;
}

/** What counters of a fleet grow by in a second, over five minutes. */
export function grows(series: string, labels: readonly string[] = []): string {
  return `${by("sum", labels)} (rate(${series}[5m]))`;
}
