import { objectiveMetrics } from "../../../src/policy/scenario/objective.js";
import { scenarioForm } from "../../../src/policy/scenario/parse-scenario.js";
import { code, paragraphs, table } from "./markdown.js";
import { schemaPages } from "./schema-pages.js";

const intro = paragraphs(
  "A scenario is a YAML file that [`headgate simulate`](cli.md) runs; " +
    "[Simulate](../guides/simulate.md) shows how to write one. `headgate schema --scenario` " +
    "prints its JSON Schema. All fields are optional unless marked as required. Unknown fields " +
    "are rejected.",
  "Durations are written like `250ms`, `10s` or `5m`. A dash as default means that there is " +
    "none, or that it depends on other values, as described.",
);

const units = { ratio: "`0` to `1`, or a percentage", count: "number", ms: "duration" } as const;

const metrics = paragraphs(
  "## Metrics of objectives",
  "An objective is a metric, one of `>=`, `<=`, `>` and `<`, and a bound. A class, a caller or a " +
    "service may stand before the metric: `critical.p99 <= 300ms`. Ratios are of requests offered.",
  table(
    ["metric", "bound", "meaning"],
    Object.entries(objectiveMetrics).map(([name, { unit, docs }]) => [
      code(name),
      units[unit],
      docs,
    ]),
  ),
);

/** The page of the scenario language. */
export const scenarioPages = schemaPages({
  form: scenarioForm,
  sections: [
    {
      name: "scenario",
      title: "Scenarios",
      purpose: "This page lists the fields of a scenario, which the simulator runs.",
      roots: [""],
      intro,
    },
  ],
  fileOf: () => "scenario.md",
}).map((page) => ({ ...page, body: paragraphs(page.body, metrics) }));
