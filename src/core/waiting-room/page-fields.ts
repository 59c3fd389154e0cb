/** Fields of a waiting room's pages: the meaning of `{{name}}` in a template or a text. */
export const pageFields = {
  lang: "The language of the page, a BCP 47 tag such as `en`.",
  dir: "The direction of the language: `ltr` or `rtl`.",
  state:
    "`waiting`, `preQueue`, `paused`, `full`, `unavailable`, `entered` or `left`: a class for CSS.",
  title: "The title, in the language of the page.",
  message: "What the visitor should know or do, in the language of the page.",
  room: "The name of the room.",
  position: "The place of the visitor, from 1; empty while there is none.",
  ahead: "How many people are ahead, from 0; empty while that is not known.",
  estimate: "The expected wait as a range with its unit, `9–11 minutes`; empty while unknown.",
  confidence: "How many percent of such ranges hold, `90 %`; empty without an estimate.",
  progress: "The part of the wait that has passed, a whole number from 0 to 100.",
  refreshSeconds: "After how many seconds the page asks again.",
  event: "The name of the event that is open or that opens next; empty without one.",
  opensAt: "When the next event opens, an RFC 3339 time; empty without one.",
  opensIn: "How long that is from now, with its unit; empty without one.",
  endpoint: "The path that `/position` and `/leave` are below, for scripts and forms.",
} as const;

/** The name of a field. */
export type PageField = keyof typeof pageFields;

/** States of a page: `{{state}}`. */
export const pageStates = [
  "waiting",
  "preQueue",
  "paused",
  "full",
  "unavailable",
  "entered",
  "left",
] as const;

/** See `pageStates`. */
export type PageState = (typeof pageStates)[number];

/**
 * Texts of the built-in page, which a policy may replace by language. Each may contain fields,
 * except `title` and `message`, which are made from texts.
 */
export const pageTexts = {
  waitingTitle: "The title while the visitor waits.",
  waiting: "The message while the visitor waits.",
  preQueueTitle: "The title before an event opens.",
  preQueue: "The message before an event opens.",
  pausedTitle: "The title while nobody is let in.",
  paused: "The message while nobody is let in.",
  fullTitle: "The title for visitors whom the room does not take.",
  full: "The message for visitors whom the room does not take.",
  unavailableTitle: "The title while the state of the room is not known.",
  unavailable: "The message while the state of the room is not known.",
  enteredTitle: "The title for visitors who have been let in, and have to send a form again.",
  entered: "The message for visitors who have been let in, and have to send a form again.",
  leftTitle: "The title for visitors who have given their place up.",
  left: "The message for visitors who have given their place up.",
  notSent: "Says that what the visitor sent, such as a form, was not delivered.",
  position: "The label of the place.",
  ahead: "The label of the number of people ahead.",
  estimate: "The label of the expected wait.",
  estimateUnknown: "Stands for the expected wait while it is not known.",
  confidence: "Says how many of the ranges hold.",
  opens: "Says when the next event opens.",
  refresh: "Says that the page asks again by itself.",
  leave: "The button that gives the place up.",
} as const;

/** The name of a text. */
export type PageText = keyof typeof pageTexts;

/** A piece of a template. */
export type TemplatePart =
  | { readonly kind: "text"; readonly text: string }
  /** `name` as written, which may not be a field's. Offsets are in UTF-16 units. */
  | { readonly kind: "field"; readonly name: string; readonly start: number; readonly end: number };

/** Maximum length of a name in braces, so that unclosed braces cost no search to the end. */
const fieldCharsMax = 128;

/** A name may have braces only in front: three or four are neither a field nor text. */
const fieldPattern = new RegExp(`\\{\\{(\\{{0,2}[^{}\\n]{0,${fieldCharsMax}})\\}\\}`, "g");

/**
 * Splits a template into texts and `{{fields}}`, in linear time. Spaces around a name are ignored.
 * Braces that do not close within a line, or contain too much, are text.
 *
 * Example: `<p>{{ ahead }} ahead` is `<p>`, the field `ahead` and ` ahead`.
 */
export function templateParts(template: string): readonly TemplatePart[] {
  const parts: TemplatePart[] = [];
  let from = 0;
  for (const match of template.matchAll(fieldPattern)) {
    const { index: start } = match;
    const end = start + match[0].length;
    if (start > from) parts.push({ kind: "text", text: template.slice(from, start) });
    parts.push({ kind: "field", name: (match[1] ?? "").trim(), start, end });
    from = end;
  }
  if (from < template.length) parts.push({ kind: "text", text: template.slice(from) });
  return parts;
}
