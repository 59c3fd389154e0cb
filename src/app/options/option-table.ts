import type { OptionSection } from "./option.js";
import { optionNames, optionRow } from "./options.js";

/**
 * The options as Markdown, one table a section: what the documentation shows, held equal by a test.
 */
export function renderOptionTable(): string {
  const sections = new Map<OptionSection, string[]>();
  for (const name of optionNames) {
    const row = optionRow(name);
    const lines = sections.get(row.section) ?? [];
    sections.set(row.section, lines);
    const flag = row.flag === undefined ? "" : `\`--${row.flag}\``;
    const env = row.isSecret ? `\`${row.env}\`, \`${row.env}_FILE\`` : `\`${row.env}\``;
    const standard =
      row.defaultText === undefined || row.defaultText === "" ? "" : `\`${row.defaultText}\``;
    lines.push(`| ${env} | ${flag} | ${standard} | ${row.docs.replaceAll("|", "\\|")} |`);
  }
  const header = ["| environment | flag | default | meaning |", "|---|---|---|---|"];
  return [...sections]
    .map(([section, lines]) => [`### ${section}`, "", ...header, ...lines].join("\n"))
    .join("\n\n");
}
