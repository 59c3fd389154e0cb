import { type ComponentChild, h } from "preact";
import type { Markup } from "../../simulate/report/markup.js";
import { figureStyle } from "../../simulate/report/report-style.js";
import { showText } from "../data/shown-text.js";

/** The report's names of colors, by those of the console. */
const colors = `--dim:var(--muted);--card:var(--panel);--edge:var(--line);--s0:var(--ink-1);
--s1:var(--ink-5);--s2:var(--bad);--s3:var(--ink-3);--s4:var(--ink-4);--s5:var(--ink-2);
--s6:var(--ink-6);--s7:var(--muted);`;

/** An object that a script made: the page's security policy lets no style of an element. */
const styles = new CSSStyleSheet();
styles.replaceSync(`.report{${colors}${figureStyle}}`);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, styles];

/** A report as its file has it. */
export function MarkupView({ markup }: { readonly markup: readonly Markup[] }) {
  return <div class="report">{markup.map(elementOf)}</div>;
}

function elementOf(markup: Markup): ComponentChild {
  if (typeof markup === "string") return showText(markup);
  const { tag, attributes, content } = markup;
  return h(tag, attributes, ...content.map(elementOf));
}
