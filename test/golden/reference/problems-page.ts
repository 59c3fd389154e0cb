import { doctorProblemRows } from "../../../src/doctor/doctor-problems.js";
import { generateProblemRows } from "../../../src/generate/base/generate-problems.js";
import { problemRows } from "../../../src/policy/problems/problem.js";
import type { ProblemRow } from "../../../src/policy/problems/problem-row.js";
import { paragraphs, type ReferencePage, table } from "./markdown.js";

const intro = `\
Every mistake that Headgate reports has an id, which keeps its meaning over versions. \`headgate
help HG142\` explains one in the terminal, for some with an example of what is wrong and what is
right. All mistakes of a policy are reported at once, each with file, line and column. An
\`error\` stops what was asked for: a policy with one is not loaded, and nothing is generated. A
\`warning\` stops nothing. \`either\` depends on the case.`;

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
    purpose: "Look up the id of a mistake or a finding: what it says, and what to do.",
    body: paragraphs(
      intro,
      "## In a policy",
      "`headgate check` reports these, and so does a policy that is loaded.",
      table(header, rowsOf(problemRows)),
      "## In generated configuration, and in Envoy's",
      "`headgate generate` reports these, and `headgate check --envoy` those of configuration " +
        "that you bring.",
      table(header, rowsOf(generateProblemRows)),
      "## Between an Envoy, a policy and Headgate",
      "`headgate doctor` reports these, the worst first.",
      table(header, rowsOf(doctorProblemRows)),
    ),
  };
}
