import { type AlertWords, severities } from "./alert.js";
import { type AlertName, alertWords } from "./alert-words.js";

/** How soon a person has to look at an alert, by severity. */
export const severityWords = {
  critical: "act now",
  warning: "look today",
  info: "good to know",
} as const;

/** Returns the anchor of an alert's section, as Markdown renderers name it. */
export function sectionOf(name: AlertName): string {
  return name.toLowerCase();
}

/** Placeholder for an alert's name in a runbook's URL, if each alert has its own page. */
const alertPlaceholder = "*";

/** Returns the URL of an alert: its page, or its section of the runbook. */
export function alertUrl(runbookUrl: string, name: AlertName): string {
  return runbookUrl.includes(alertPlaceholder)
    ? runbookUrl.replaceAll(alertPlaceholder, name)
    : `${runbookUrl}#${sectionOf(name)}`;
}

/** Returns the URL of all alerts: the runbook, or the folder of the pages. */
export function runbookIndexUrl(runbookUrl: string): string {
  const [begin = "", page] = runbookUrl.split(alertPlaceholder);
  return page === undefined ? runbookUrl : begin.replace(/[^/]*$/, "");
}

/** Renders the runbook of these alerts in Markdown: a section for each, most urgent first. */
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
