import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { defaultGenerateOptions } from "../../src/generate/base/generate-options.js";
import { type AlertRule, severities } from "../../src/generate/observe/alert.js";
import { type AlertName, alertWords } from "../../src/generate/observe/alert-words.js";
import { alertRules } from "../../src/generate/observe/alerts.js";
import { severityWords } from "../../src/generate/observe/runbook.js";
import { casePolicy, generatedCases } from "../support/generated.js";

const folder = "docs/runbooks";
const isUpdating = process.env["UPDATE_GOLDEN"] === "1";
const end = "<!-- end -->\n";

/** A rule of each alert, of the first example that has it. */
const ruleOf = new Map<AlertName, AlertRule<AlertName>>(
  generatedCases()
    .filter(({ target }) => target === "alerts")
    .flatMap((given) => alertRules(casePolicy(given), defaultGenerateOptions))
    .toReversed()
    .map((rule) => [rule.alert, rule]),
);

const names = [...ruleOf.keys()].sort();

/** A text of an alert with links to other alerts, and names of metrics, fields and logs as code. */
function linked(text: string): string {
  return text
    .replace(/(?<![`\w])(?:[a-z]+(?:_[a-z]+)+|[A-Z]+(?:_[A-Z]+)+)(?![`\w])/g, "`$&`")
    .replace(/\b(log line) (\w+)/g, "$1 `$2`")
    .replace(/\b(?:Headgate|Envoy)[A-Z]\w+/g, (word) =>
      names.some((name) => name === word) ? `[${word}](${word}.md)` : word,
    );
}

/** The summary of an alert, with its labels as code. */
function summaryOf(name: AlertName): string {
  return alertWords[name].summary.replace(/\{\{ \$labels\.(\w+) \}\}/g, "`$1`");
}

/** The part of a page that is the code's; what stands below it is written by hand. */
function renderPage(name: AlertName): string {
  const { severity, means, look, act } = alertWords[name];
  const rule = ruleOf.get(name);
  const minutes = rule?.forMinutes ?? 0;
  const wait = minutes === 0 ? "immediately" : `${minutes} min`;
  return `# ${name}

This page explains what this alert means, what to check, and what to do.

| summary | severity | raised after |
|---|---|---|
| ${summaryOf(name)} | ${severity}: ${severityWords[severity]} | ${wait} |

## What it means

${linked(means)}

## What to look at

${linked(look)}

## What to do

${linked(act)}

## The rule

Thresholds, services and domains come from your policy. For one example it is:

<!-- test: runbook -->
\`\`\`promql
${rule?.expr}
\`\`\`

Its metrics are in [Metrics](../reference/metrics.md).

${end}`;
}

/** All pages by how soon somebody has to look. */
function renderIndex(): string {
  const lists = severities.map((severity) => {
    const own = names.filter((name) => alertWords[name].severity === severity);
    const rows = own.map((name) => {
      return `- [${name}](${name}.md): ${summaryOf(name)}`;
    });
    const title = `${severity[0]?.toUpperCase()}${severity.slice(1)}: ${severityWords[severity]}`;
    return `## ${title}\n\n${rows.join("\n")}\n`;
  });
  return `# Runbooks

This page lists a page for each alert that \`headgate generate alerts\` makes.

[Observability](../guides/observability.md#dashboards-and-alerts) says how to generate the rules and
how to link them to these pages.

${lists.join("\n")}`;
}

function read(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

describe("docs/runbooks", () => {
  it("has a page for each alert, and no others", () => {
    const wanted = [...names.map((name) => `${name}.md`), "README.md"].sort();
    expect(names).toEqual(Object.keys(alertWords).sort());
    if (!isUpdating) expect(readdirSync(folder).sort()).toEqual(wanted);
  });

  it.each(names)("says of %s what the code says", (name) => {
    const path = `${folder}/${name}.md`;
    const [, own = ""] = read(path).split(end);
    if (isUpdating) writeFileSync(path, renderPage(name) + own);
    expect(read(path).split(end)[0] + end, "run UPDATE_GOLDEN=1 npm run golden").toBe(
      renderPage(name),
    );
  });

  it("lists all of them", () => {
    const path = `${folder}/README.md`;
    if (isUpdating) writeFileSync(path, renderIndex());
    expect(read(path), "run UPDATE_GOLDEN=1 npm run golden").toBe(renderIndex());
  });
});
