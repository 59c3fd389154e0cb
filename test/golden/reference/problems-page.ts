import { doctorProblemRows } from "../../../src/doctor/doctor-problems.js";
import { generateProblemRows } from "../../../src/generate/base/generate-problems.js";
import { problemRows } from "../../../src/policy/problems/problem.js";
import type { ProblemRow } from "../../../src/policy/problems/problem-row.js";
import { paragraphs, type ReferencePage, table } from "./markdown.js";

const intro = `\
Every problem that Headgate reports has an id, which keeps its meaning across versions.
\`headgate help HG142\` explains an id in the terminal, often with a wrong and a correct example.
All problems of a policy are reported at once, each with file, line and column. A policy with an
\`error\` is not loaded, and nothing is generated from it. A \`warning\` has no such effect.
\`either\` depends on the case.`;

function rowsOf(problems: Readonly<Record<string, ProblemRow>>): readonly string[][] {
  return Object.entries(problems)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, { severity = "error", title, remedy }]) => [
      `<a id="${id.toLowerCase()}"></a>${id}`,
      severity,
      title,
      remedy,
    ]);
}

const header = ["id", "severity", "what it says", "what to do"];

/** Every problem by its id. */
export function problemsPage(): ReferencePage {
  return {
    path: "problems.md",
    title: "Problems",
    purpose:
      "This page lists the ids of all problems and findings, with their meanings and remedies.",
    body: paragraphs(
      intro,
      "## In a policy",
      "`headgate check` reports these, and so does a running Headgate when it loads a policy.",
      table(header, rowsOf(problemRows)),
      "## In generated configuration, and in Envoy's",
      "`headgate generate` reports these, and `headgate check --envoy` those of configuration " +
        "that you bring.",
      table(header, rowsOf(generateProblemRows)),
      "## Between an Envoy, a policy and Headgate",
      "`headgate doctor` reports these, most severe first.",
      table(header, rowsOf(doctorProblemRows)),
    ),
  };
}
