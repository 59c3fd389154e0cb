import { type AlertWords, severities } from "./alert.js";
import { type AlertName, alertWords } from "./alert-words.js";

/** How soon an alert of each severity is worth a look. */
const severityWords = {
  critical: "somebody has to look now",
  warning: "somebody has to look today",
  info: "worth knowing",
} as const;

/** Where a runbook has the section of an alert, as Markdown's readers name sections. */
export function sectionOf(name: AlertName): string {
  return name.toLowerCase();
}

/** Stands in a runbook's URL for the name of the alert, where each has a page of its own. */
const alertPlaceholder = "*";

/** Where people find an alert: its page, or its section of the one runbook. */
export function alertUrl(runbookUrl: string, name: AlertName): string {
  return runbookUrl.includes(alertPlaceholder)
    ? runbookUrl.replaceAll(alertPlaceholder, name)
    : `${runbookUrl}#${sectionOf(name)}`;
}

/** Where people find all of them: the one runbook, or the folder of the pages. */
export function runbookIndexUrl(runbookUrl: string): string {
  const [begin = "", page] = runbookUrl.split(alertPlaceholder);
  return page === undefined ? runbookUrl : begin.replace(/[^/]*$/, "");
}

/** The runbook of these alerts, in Markdown: a section each, those that cannot wait first. */
export function renderRunbook(names: readonly AlertName[]): string {
  const parts = ["# Runbook", ""];
  for (const severity of severities) {
    const own = names.filter((name) => alertWords[name].severity === severity);
    if (own.length > 0)
      parts.push(`- **${severity}**, ${severityWords[severity]}: ${own.map(link).join(", ")}`);
  }
  parts.push("");
  for (const severity of severities) {
    for (const name of names) {
      if (alertWords[name].severity === severity) parts.push(...section(name, alertWords[name]));
    }
  }
  return parts.join("\n");
}

function link(name: AlertName): string {
  return `[${name}](#${sectionOf(name)})`;
}

function section(name: AlertName, words: AlertWords): readonly string[] {
  const { severity, means, look, act } = words;
  const text = (label: string, words: string): string => `**${label}** ${words}`;
  return [
    `## ${name}`,
    "",
    `*${severity}*`,
    "",
    text("What it means.", means),
    "",
    text("What to look at.", look),
    "",
    text("What to do.", act),
    "",
  ];
}
