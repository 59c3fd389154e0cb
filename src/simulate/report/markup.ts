import { visibleText } from "../../policy/problems/problem.js";

/** Elements of a report. None of them loads or runs anything. */
type MarkupTag =
  | "circle"
  | "details"
  | "div"
  | "figcaption"
  | "figure"
  | "h2"
  | "h3"
  | "li"
  | "line"
  | "p"
  | "path"
  | "rect"
  | "span"
  | "summary"
  | "svg"
  | "table"
  | "tbody"
  | "td"
  | "text"
  | "th"
  | "thead"
  | "tr"
  | "ul";

/** An element of a page, as plain data: a file has it as HTML, and the console as its own. */
export interface MarkupElement {
  readonly tag: MarkupTag;
  readonly attributes: Readonly<Record<string, string>>;
  readonly content: readonly Markup[];
}

/** An element, or a text, in which nothing acts. */
export type Markup = MarkupElement | string;

/** An element; numbers of its attributes are places of a drawing, to a tenth. */
export function element(
  tag: MarkupTag,
  attributes: Readonly<Record<string, string | number>>,
  content: readonly Markup[] = [],
): MarkupElement {
  const written = Object.entries(attributes).map(([name, value]) => {
    return [name, typeof value === "string" ? value : place(value)] as const;
  });
  return { tag, attributes: Object.fromEntries(written), content };
}

/** A place of a drawing, to a tenth. */
export function place(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** A list of sentences. */
export function listOf(sentences: readonly string[]): MarkupElement {
  return element(
    "ul",
    {},
    sentences.map((sentence) => element("li", {}, [sentence])),
  );
}

/** A table. */
export interface MarkupTable {
  /** What it is about: it may scroll, and is a place that keys reach. */
  readonly label: string;
  readonly titles: readonly string[];
  /** The first cell names its row. */
  readonly rows: readonly (readonly string[])[];
}

/** A table, which scrolls to the side where there is no room. */
export function tableOf({ label, titles, rows }: MarkupTable): MarkupElement {
  const head = titles.map((title) => element("th", { scope: "col" }, [title]));
  const body = rows.map(([first = "", ...cells]) => {
    const row = cells.map((cell) => element("td", {}, [cell]));
    return element("tr", {}, [element("th", { scope: "row" }, [first]), ...row]);
  });
  const table = element("table", {}, [
    element("thead", {}, [element("tr", {}, head)]),
    element("tbody", {}, body),
  ]);
  const reached = { tabindex: "0", role: "group", "aria-label": label };
  return element("div", { class: "scroll", ...reached }, [table]);
}

/** Lines of their own in a file; others continue the line. */
const blocks: ReadonlySet<MarkupTag> = new Set([
  "circle",
  "details",
  "div",
  "figure",
  "h2",
  "line",
  "path",
  "rect",
  "svg",
  "tr",
  "ul",
]);

/** Elements and texts as HTML. */
export function writeHtml(markup: readonly Markup[]): string {
  return markup.map(writeOne).join("");
}

function writeOne(markup: Markup): string {
  if (typeof markup === "string") return escapeHtml(markup);
  const { tag, attributes, content } = markup;
  const written = Object.entries(attributes).map(([name, value]) => {
    return ` ${name}="${escapeHtml(value)}"`;
  });
  const newline = blocks.has(tag) ? "\n" : "";
  return `${newline}<${tag}${written.join("")}>${writeHtml(content)}</${tag}>`;
}

/** Any text as text of a page. */
export function escapeHtml(text: string): string {
  return visibleText(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
