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

/** An element of a page as plain data. A file writes it as HTML, the console as DOM elements. */
export interface MarkupElement {
  readonly tag: MarkupTag;
  readonly attributes: Readonly<Record<string, string>>;
  readonly content: readonly Markup[];
}

/** An element or a text. Neither has any behavior. */
export type Markup = MarkupElement | string;

/** Creates an element. Numbers in attributes are coordinates, rounded to a tenth. */
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

/** Returns a coordinate, rounded to a tenth. */
export function place(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Creates a list of sentences. */
export function listOf(sentences: readonly string[]): MarkupElement {
  return element(
    "ul",
    {},
    sentences.map((sentence) => element("li", {}, [sentence])),
  );
}

/** A table. */
export interface MarkupTable {
  /** Accessible name of the table, which may scroll and is reachable by keyboard. */
  readonly label: string;
  readonly titles: readonly string[];
  /** The first cell is the row's header. */
  readonly rows: readonly (readonly string[])[];
}

/** Creates a table that scrolls sideways if there is no room. */
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

/** Elements that start on their own line in a file; others continue the line. */
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

/** Writes elements and texts as HTML. */
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

/** Escapes a text for HTML. */
export function escapeHtml(text: string): string {
  return visibleText(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
