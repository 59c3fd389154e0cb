import { type StatTag, statText, tagText } from "../options/stats-names.js";

/**
 * Turns parts of a statistic's name into tags.
 *
 * Source: "DogStatsD" in the README of envoyproxy/ratelimit.
 */
export interface Mogrifier {
  /** Pattern that matches any part of a name. */
  readonly pattern: RegExp;
  /** The new name. `$1` is the first group, `$0` the whole match. */
  readonly name: string;
  /** Tags whose values are formed like the name. */
  readonly tags: readonly StatTag[];
}

/** A statistic's name, and the tags that were extracted from it. */
interface Mogrified {
  readonly name: string;
  readonly tags: readonly StatTag[];
}

/** A rule without its tags, or the problem and the part that has it. */
type ParsedMogrifier =
  | { readonly kind: "value"; readonly value: Omit<Mogrifier, "tags"> }
  | {
      readonly kind: "problem";
      readonly part: "PATTERN" | "NAME";
      readonly message: string;
    };

/** Parses a rule. Named groups may have Go's syntax. */
export function parseMogrifier(texts: {
  readonly pattern: string;
  readonly name: string;
}): ParsedMogrifier {
  const { pattern, name } = texts;
  if (pattern === "") return { kind: "problem", part: "PATTERN", message: "is missing" };
  if (name === "") return { kind: "problem", part: "NAME", message: "is missing" };
  try {
    const value = { pattern: new RegExp(pattern.replaceAll("(?P<", "(?<"), "u"), name };
    return { kind: "value", value };
  } catch {
    // The engine's error message quotes the text.
    const message = "is not a valid ECMAScript regular expression";
    return { kind: "problem", part: "PATTERN", message };
  }
}

/** Applies the first rule that matches, in order. */
export function mogrify(name: string, mogrifiers: readonly Mogrifier[]): Mogrified {
  for (const mogrifier of mogrifiers) {
    const found = mogrifier.pattern.exec(name);
    if (found === null) continue;
    return {
      name: statText(fill(mogrifier.name, found)),
      tags: mogrifier.tags.map((tag) => ({ ...tag, value: tagText(fill(tag.value, found)) })),
    };
  }
  return { name, tags: [] };
}

/** Fills in groups. Unknown groups stay as they are written; unmatched ones become empty. */
function fill(template: string, found: readonly (string | undefined)[]): string {
  return template.replace(/\$(\d{1,2})/g, (written, digits: string) => {
    const group = Number(digits);
    return group < found.length ? (found[group] ?? "") : written;
  });
}
