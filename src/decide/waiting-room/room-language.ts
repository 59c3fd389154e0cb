/** Maximum number of characters of `accept-language` that are read. */
const acceptCharsMax = 256;

/** The language of the built-in page. */
export const builtInLanguage = "en";

/** Source: Unicode CLDR, character order of languages. */
const rightToLeft: ReadonlySet<string> = new Set(["ar", "fa", "he", "ur", "yi", "ps", "ckb", "dv"]);

/** The direction of a language's writing. */
export function directionOf(language: string): "ltr" | "rtl" {
  return rightToLeft.has(language.toLowerCase().split("-")[0] ?? "") ? "rtl" : "ltr";
}

/**
 * Returns the language of a response: of the available languages, the one that the caller prefers,
 * by whole tag or by its first part; otherwise `builtInLanguage`.
 *
 * Example: `de-CH, fr;q=0.8` with texts in `de` and `fr` is `de`.
 *
 * Source: RFC 9110, section 12.5.4; RFC 4647, section 3.4 (lookup).
 */
export function chooseLanguage(
  accept: string | undefined,
  languages: ReadonlyMap<string, unknown>,
): string {
  let best = builtInLanguage;
  let bestWeight = 0;
  for (const part of (accept ?? "").slice(0, acceptCharsMax).split(",")) {
    const [tag = "", ...parameters] = part.split(";").map((piece) => piece.trim().toLowerCase());
    const weight = weightOf(parameters);
    const language = weight > bestWeight ? lookUp(tag, languages) : undefined;
    if (language === undefined) continue;
    best = language;
    bestWeight = weight;
  }
  return best;
}

function weightOf(parameters: readonly string[]): number {
  const text = parameters.find((parameter) => parameter.startsWith("q="));
  if (text === undefined) return 1;
  const weight = Number(text.slice(2));
  return weight >= 0 && weight <= 1 ? weight : 0;
}

/** Shortens a tag until it is one of the languages. */
function lookUp(tag: string, languages: ReadonlyMap<string, unknown>): string | undefined {
  for (let rest = tag; rest !== ""; rest = rest.slice(0, Math.max(0, rest.lastIndexOf("-")))) {
    for (const language of languages.keys()) if (language.toLowerCase() === rest) return language;
    if (rest === builtInLanguage) return builtInLanguage;
  }
  return undefined;
}
