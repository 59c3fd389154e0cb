import type { Exemplar, MetricFamily, SeriesSample } from "./metrics.js";

/** Source: OpenMetrics 1.0, "Protocol Negotiation". */
export const openMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/**
 * Reports whether a client prefers OpenMetrics to Prometheus' older text format, or accepts both
 * alike. Prometheus does by default. A client that accepts anything gets the older format.
 *
 * @param accept the field of its request. Source: RFC 9110, 12.5.1
 */
export function prefersOpenMetrics(accept: string): boolean {
  const weights = new Map<string, number>();
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.toLowerCase().split(";");
    const weight = parameters.map((one) => /^\s*q=([0-9.]+)\s*$/.exec(one)?.[1]).find(Boolean);
    const name = type.trim();
    weights.set(name, Math.max(weights.get(name) ?? 0, Number(weight ?? 1) || 0));
  }
  const weight = weights.get("application/openmetrics-text") ?? 0;
  return weight > 0 && weight >= (weights.get("text/plain") ?? 0);
}

/**
 * Renders metrics as OpenMetrics, which has exemplars. Buckets have the same bounds as in the older
 * format, character for character, so that a series stays the same when a scraper changes over.
 *
 * Source: OpenMetrics 1.0, "Text Format".
 */
export async function renderOpenMetrics(families: AsyncIterable<MetricFamily>): Promise<string> {
  const lines: string[] = [];
  for await (const { name, help, type, samples } of families) {
    const isCounter = type === "counter";
    // The family of a counter is named without the suffix that its samples must have.
    const family = isCounter ? name.replace(/_total$/, "") : name;
    lines.push(`# TYPE ${family} ${type}`, `# HELP ${family} ${escaped(help)}`);
    for (const sample of samples) {
      lines.push(sampleLine(isCounter ? `${family}_total` : sample.name, sample));
    }
  }
  return `${lines.join("\n")}\n# EOF\n`;
}

function sampleLine(name: string, { labels, value, exemplar }: SeriesSample): string {
  const text = `${name}${labelSet(labels)} ${numberText(value)}`;
  return exemplar === undefined ? text : `${text} # ${exemplarText(exemplar)}`;
}

function exemplarText({ traceId, spanId, value, epochMs }: Exemplar): string {
  const labels = labelSet({ trace_id: traceId, span_id: spanId });
  return `${labels} ${numberText(value)} ${(epochMs / 1_000).toFixed(3)}`;
}

function labelSet(labels: SeriesSample["labels"]): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escaped(String(value))}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function numberText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
