import { httpStatuses } from "../../core/base/http-status.js";
import {
  type PageField,
  pageFields,
  pageTexts,
  templateParts,
} from "../../core/waiting-room/page-fields.js";
import { quoteText } from "../problems/problem.js";
import type { Finding } from "../problems/problem-log.js";
import type { TextRange } from "../problems/source-text.js";
import { type FieldType, readBy, ruledText, text, whole } from "../text/form.js";
import { findNearestName } from "../text/nearest-name.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { field, inner, object, placed } from "../text/object.js";
import type { TextRule } from "../text/text-rules.js";
import { pageFileCharsMax, pageFilePattern } from "./page-file.js";

/** Maximum length of a template, in UTF-16 units. */
export const templateCharsMax = 65_536;

/** Maximum length of a text of a page, in UTF-16 units. */
export const pageTextCharsMax = 1_024;

/** Maximum number of languages of one room. */
export const languagesMax = 64;

const statuses: readonly number[] = [httpStatuses.ok, httpStatuses.serviceUnavailable];
const statusBounds = { min: httpStatuses.ok, max: httpStatuses.serviceUnavailable };

const status = readBy(whole(statusBounds), (reader, place) => {
  const read = reader.readWhole(place, statusBounds);
  if (read === undefined || statuses.includes(read)) return read;
  const message = `${read} is not a status of a waiting page`;
  const expected = statuses.join(" or ");
  return reader.reportContent(place.value ?? place.key, { id: "HG133", message, expected });
});

const control = /(?![\n\r\t])[\p{Cc}\p{Cs}]/u;

/** `template`, and the text of a `templateFile`. */
export const templateRule: TextRule = {
  charsMax: templateCharsMax,
  forbidden: control,
  expected: `a page in HTML of at most ${templateCharsMax} characters`,
};

const textRule: TextRule = {
  charsMax: pageTextCharsMax,
  forbidden: control,
  expected: `a text of at most ${pageTextCharsMax} characters`,
};

/** Maximum number of wrong fields reported for one text: finding each place scans all of it. */
const wrongFieldsMax = 8;

/** Reports a problem of a text as a whole, or of a part of it. */
type ReportsPart = (finding: Finding, part?: TextRange) => void;

/** Reports at the value of a field. */
function reportsAt(reader: NodeReader, { value, key }: Field): ReportsPart {
  const node = value ?? key;
  return (finding, part) => {
    if (part === undefined) reader.reportContent(node, finding);
    else reader.reportPart(node, part, finding);
  };
}

/** Returns the fields that a text names; undefined, and reported, if some are unknown. */
function readFields(
  written: string,
  known: readonly string[],
  report: ReportsPart,
): readonly string[] | undefined {
  const parts = templateParts(written).filter((part) => part.kind === "field");
  const wrong = parts.filter(({ name }) => !known.includes(name));
  for (const part of wrong.slice(0, wrongFieldsMax)) {
    const finding = {
      id: "HG275",
      message: `${quoteText(part.name)} is not a field of a waiting page`,
      expected: known.join(", "),
      suggestion: findNearestName(part.name, known),
    } as const;
    report(finding, part);
  }
  return wrong.length > 0 ? undefined : parts.map(({ name }) => name);
}

const fieldNames: readonly string[] = Object.keys(pageFields);

/** Fields of which a useful page has at least one. */
const places: readonly PageField[] = ["position", "ahead", "estimate", "message"];

/** Reports unknown fields, and a template without a field that tells visitors their place. */
export function checkTemplate(written: string, report: ReportsPart): void {
  const named = readFields(written, fieldNames, report);
  if (named === undefined || places.some((name) => named.includes(name))) return;
  report({
    id: "HG276",
    message: "the template does not tell visitors their place",
    expected: `{{${places.join("}}, {{")}}} or several of them`,
    suggestion: "{{position}}",
  });
}

const template: FieldType<string> = readBy(text(templateRule), (reader, place) => {
  const written = reader.readText(place, templateRule);
  if (written !== undefined) checkTemplate(written, reportsAt(reader, place));
  return written;
});

const fileRule: TextRule = {
  charsMax: pageFileCharsMax,
  forbidden: /[^-._A-Za-z0-9]/,
  expected: "the name of an HTML file without its path, such as lobby.html",
};

/** Without the fields that are built from texts, which would contain themselves. */
const textFields = fieldNames.filter((name) => name !== "title" && name !== "message");

const pageText: FieldType<string> = readBy(text(textRule), (reader, place) => {
  const written = ruledText(textRule).read(reader, place);
  if (written !== undefined) readFields(written, textFields, reportsAt(reader, place));
  return written;
});

/** The texts of one language. */
const languageTexts = object(
  { title: "texts of a page", docs: "Texts of the page in one language." },
  Object.fromEntries(
    Object.entries(pageTexts).map(([name, docs]) => [name, field(pageText, docs)]),
  ),
  {
    data: (read): ReadonlyMap<string, string> =>
      new Map(
        Object.entries(read).flatMap(([name, said]) =>
          typeof said === "string" ? [[name, said] as const] : [],
        ),
      ),
  },
);

/** Pattern of a language tag, as far as a pattern can express it. Source: RFC 5646 section 2.1. */
const languagePattern = /^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*$/;

/** Returns the canonical form of a tag; undefined if it is not one. Example: `PT-br` is `pt-BR`. */
function canonicalLanguage(tag: string): string | undefined {
  if (!languagePattern.test(tag)) return undefined;
  try {
    return Intl.getCanonicalLocales(tag)[0];
  } catch {
    return undefined;
  }
}

const textsExpected = "texts by language, such as {sv: {waitingTitle: Du står i kö}}";

const texts = readBy<ReadonlyMap<string, ReadonlyMap<string, string>>>(
  {
    kind: "texts",
    key: languagePattern,
    value: inner(languageTexts),
    max: languagesMax,
  },
  (reader, place) => {
    const rows = reader.readTextMap(place, { title: "texts", expected: textsExpected });
    if (rows === undefined) return undefined;
    if (rows.length === 0 || rows.length > languagesMax) {
      const message = `"texts" of ${rows.length} languages`;
      const expected = `1 to ${languagesMax} languages`;
      return reader.report(place.key, { id: "HG160", message, expected });
    }
    const byLanguage = new Map<string, ReadonlyMap<string, string>>();
    for (const row of rows) {
      const language = canonicalLanguage(row.name);
      if (language === undefined || byLanguage.has(language)) refuseLanguage(reader, row, language);
      const said = inner(languageTexts, textsExpected).read(reader, row);
      if (language !== undefined && said !== undefined) byLanguage.set(language, said);
    }
    return byLanguage;
  },
);

function refuseLanguage(reader: NodeReader, row: Field, language: string | undefined): void {
  const tag = quoteText(row.name);
  const message =
    language === undefined
      ? `${tag} is not a language`
      : `the language ${quoteText(language)} is already defined above`;
  const expected = "a BCP 47 tag, each once: en, sv, pt-BR, zh-Hant";
  reader.report(row.key, { id: "HG277", message, expected });
}

/** `page` of a waiting room. */
export const roomPage = object(
  {
    title: "a page",
    docs: "What a visitor sees.",
    alternatives: ["template", "templateFile"],
  },
  {
    status: field(status, "The HTTP status of the page, 200 or 503.", {
      larger: "different",
      default: httpStatuses.ok,
    }),
    template: field(
      template,
      "The page in HTML with `{{fields}}`, whose values are escaped. Default: the built-in page.",
    ),
    templateFile: field(
      placed(ruledText(fileRule, pageFilePattern)),
      "The template in a file of its own: an HTML file beside the policy, by name without path.",
    ),
    texts: field(
      texts,
      "Texts that replace those of the built-in page, by language. The visitor's " +
        "`accept-language` selects the language.",
    ),
  },
  { data: ({ texts: byLanguage, ...read }) => ({ ...read, texts: byLanguage ?? new Map() }) },
);
