import { describe, expect, it } from "vitest";
import { createMetrics, createProcessMetrics } from "../../../../src/app/base/metrics.js";
import { prefersOpenMetrics, renderOpenMetrics } from "../../../../src/app/base/open-metrics.js";
import { latencyHistogram } from "../../../../src/app/metrics/decision-metrics.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";

/** What Prometheus 3 sends. */
const prometheus =
  "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5," +
  "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3," +
  "text/plain;version=0.0.4;q=0.2,*/*;q=0.1";

describe("prefersOpenMetrics()", () => {
  it.each<[string, boolean]>([
    ["", false],
    ["*/*", false],
    ["text/plain", false],
    ["application/openmetrics-text", true],
    ["Application/OpenMetrics-Text; version=1.0.0", true],
    ["application/openmetrics-text,text/plain", true],
    ["application/openmetrics-text;q=0.5,text/plain;q=0.9", false],
    ["text/plain;q=0.4, application/openmetrics-text; q=0.5", true],
    ["application/openmetrics-text;q=0", false],
    ["application/openmetrics-text;q=0.0.0", false],
    ["application/openmetrics-text;q=x", true],
    ["application/openmetrics-textual", false],
    [prometheus, true],
    [";,=;;q=,", false],
    [",".repeat(16_000), false],
  ])("of %s is %s", (accept, isPreferred) => {
    expect(prefersOpenMetrics(accept)).toBe(isPreferred);
  });
});

describe("renderOpenMetrics()", () => {
  it("writes families, samples, exemplars and the end", async () => {
    const counters = new DecisionCounters();
    counters.countLatency(0.7);
    counters.countLatency(9_000);
    const trace = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
    counters.noteTrace({ elapsedMs: 0.7, epochUs: 1_700_000_000_123_456, trace });
    const metrics = createMetrics({ team: "edge" });
    metrics.add({
      counters: [
        {
          name: "headgate_hits_total",
          help: 'Of "rules"\\here.\nMore.',
          labelNames: ["rule"],
          read: (add) => add(3, { rule: 'a\\b"c\nd' }),
        },
      ],
      gauges: [
        { name: "headgate_most", help: "Most.", read: (add) => add(Number.POSITIVE_INFINITY) },
        { name: "headgate_least", help: "Least.", read: (add) => add(Number.NEGATIVE_INFINITY) },
      ],
      histograms: [latencyHistogram(counters, { name: "headgate_seconds", unitMs: 1_000 })],
    });
    const text = await renderOpenMetrics(metrics.families());
    const bucket = (le: string) => `headgate_seconds_bucket{team="edge",le="${le}"}`;
    expect(text.split("\n")).toEqual([
      "# TYPE headgate_most gauge",
      "# HELP headgate_most Most.",
      'headgate_most{team="edge"} +Inf',
      "# TYPE headgate_least gauge",
      "# HELP headgate_least Least.",
      'headgate_least{team="edge"} -Inf',
      "# TYPE headgate_hits counter",
      '# HELP headgate_hits Of \\"rules\\"\\\\here.\\nMore.',
      'headgate_hits_total{team="edge",rule="a\\\\b\\"c\\nd"} 3',
      "# TYPE headgate_seconds histogram",
      "# HELP headgate_seconds Decision latency, without the transport.",
      ...["0.0001", "0.00025", "0.0005"].map((le) => `${bucket(le)} 0`),
      `${bucket("0.001")} 1 # {trace_id="${trace.traceId}",span_id="${trace.spanId}"} ` +
        "0.0007 1700000000.123",
      ...["0.0025", "0.005", "0.01", "0.015", "0.02", "0.05", "0.1", "1"].map(
        (le) => `${bucket(le)} 1`,
      ),
      `${bucket("+Inf")} 2`,
      'headgate_seconds_sum{team="edge"} 9.0007',
      'headgate_seconds_count{team="edge"} 2',
      "# EOF",
      "",
    ]);
    expect(await metrics.render()).not.toContain("trace_id");
  });

  it("leaves the older format as it was", async () => {
    const metrics = createProcessMetrics();
    await renderOpenMetrics(metrics.families());
    expect(await metrics.render()).toContain("# TYPE process_cpu_seconds_total counter");
  });
});
