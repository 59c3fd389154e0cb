import { libraryMetrics } from "../../../src/client/metrics/library-metrics.js";
import { block, code, paragraphs, type ReferencePage, table } from "./markdown.js";

const example = `<!-- test: client -->
${block(
  `
import { createAdmission } from "headgate/client";
import { addMetrics } from "headgate/metrics/prometheus";
import { Registry } from "prom-client";

const orders = createAdmission({ name: "orders" });
const registry = new Registry();
addMetrics(registry, { calls: [orders] });

await orders.run(async () => "an order");
const metrics = await registry.metrics();
console.log(metrics.includes('headgate_client_calls_total{admission="orders"} 1')); // prints true
`,
  "ts",
)}`;

/** The metrics of the library for other programs. */
export function libraryMetricsPage(): ReferencePage {
  const rows = libraryMetrics.map(({ name, kind, labelNames, help }) => [
    code(name),
    kind,
    ["admission", ...labelNames].map(code).join(", "),
    help,
  ]);
  return {
    path: "library-metrics.md",
    title: "Metrics of the library",
    purpose: "This page lists the metrics of `headgate/client` and `headgate/server`.",
    body: paragraphs(
      example,
      "`requests` adds admissions of services (`createServerAdmission`); `windows` adds window " +
        "limiters by name. `observeMetrics(meter, {calls: [orders]})` of " +
        "`headgate/metrics/opentelemetry` adds the same metrics to a meter of OpenTelemetry, " +
        "without `_total` at the end of a name. The label `admission` is the name of what is " +
        "measured. All other values come from closed sets.",
      table(["metric", "type", "labels", "what it says"], rows),
    ),
  };
}
