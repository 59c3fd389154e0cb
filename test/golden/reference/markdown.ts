/** A page of docs/reference: its text is a function of the code alone. */
export interface ReferencePage {
  /** Below docs/reference, such as `policy/quotas.md`. */
  readonly path: string;
  readonly title: string;
  /** What a reader can do with it: one sentence. */
  readonly purpose: string;
  /** What follows title and purpose. */
  readonly body: string;
}

/** The whole text of a page. */
export function renderPage({ title, purpose, body }: ReferencePage): string {
  const note =
    "<!-- Generated from the code by `npm run reference`; a test keeps it up to date. -->";
  return `# ${title}\n\n${note}\n\n${purpose}\n\n${body.trim()}\n`;
}

/** A table; cells are Markdown. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = header.map(() => "---");
  return [header, rule, ...rows].map((cells) => `| ${cells.map(cell).join(" | ")} |`).join("\n");
}

/** A bar or an end of line would end the cell. */
function cell(text: string): string {
  return plain(text).replaceAll("|", "\\|").replaceAll("\n", " ");
}

/** Markdown without HTML: what stands in angle brackets outside of code would be taken for tags. */
export function plain(text: string): string {
  return text
    .split(/(`[^`]*`|<a id="[\w-]+"><\/a>)/)
    .map((part, i) => (i % 2 === 0 ? part.replaceAll("<", "&lt;") : part))
    .join("");
}

/** Inline code; nothing for an empty text. */
export function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}

/** A block of code. */
export function block(text: string, language = "text"): string {
  return `\`\`\`${language}\n${text.replace(/^\n+|\s+$/g, "")}\n\`\`\``;
}

/** What a link to a heading of a page ends with, as GitHub makes it. */
export function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
}

/** Parts with an empty line between them; empty ones are left out. */
export function paragraphs(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("\n\n");
}
