import { proseOf } from "./docs.js";

/** How a page reads. */
export interface ReadingMeasures {
  readonly words: number;
  /** Words of a sentence in the mean. */
  readonly meanSentence: number;
  /** Words of the longest sentence. */
  readonly longestSentence: number;
  readonly longestText: string;
  /** Terms of the glossary that the page uses, and neither links nor defines. */
  readonly unlinkedTerms: readonly string[];
}

/** Ends of sentences, not those of abbreviations and numbers. */
const sentenceEnd = /(?<=[.!?:])\s+(?=[A-Z`*("\d])/;

/** Text without marks of Markdown: links by their words, code as one word. */
function plainOf(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/`[^`]+`/g, "Code")
    .replace(/[*>#]/g, "");
}

/** The sentences of a page; items of lists and headings are sentences of their own. */
export function sentencesOf(text: string): readonly string[] {
  return proseOf(text)
    .split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=#)/)
    .flatMap((block) => plainOf(block).replace(/\s+/g, " ").trim().split(sentenceEnd))
    .filter((sentence) => /\w/.test(sentence));
}

function wordsOf(text: string): number {
  return text.split(/\s+/).filter((word) => /\w/.test(word)).length;
}

/** Measures a page against the terms of the glossary. */
export function measure(text: string, terms: readonly string[]): ReadingMeasures {
  const sentences = sentencesOf(text);
  const counts = sentences.map(wordsOf);
  const longestSentence = Math.max(0, ...counts);
  const words = counts.reduce((sum, count) => sum + count, 0);
  const prose = plainOf(proseOf(text)).replace(/\s+/g, " ");
  const links = [...text.matchAll(/\[([^\]]*)\]\([^)]*\)/g)].map(([link]) => link);
  const unlinkedTerms = terms.filter((term) => {
    const pattern = new RegExp(`\\b${term}s?\\b`, "i");
    return pattern.test(prose) && !links.some((link) => pattern.test(link.replaceAll("-", " ")));
  });
  return {
    words,
    meanSentence: sentences.length === 0 ? 0 : words / sentences.length,
    longestSentence,
    longestText: sentences[counts.indexOf(longestSentence)] ?? "",
    unlinkedTerms,
  };
}

/** Terms that any reader knows in a general sense, or that are verbs as well. */
const plainWords = ["charge", "line", "place", "policy", "replica", "role", "rule"].concat([
  "session",
  "share",
  "account",
  "budget",
  "estimate",
]);

/** The terms of the glossary that need a link, each a heading there. */
export function termsOf(glossary: string): readonly string[] {
  const terms = [...glossary.matchAll(/^### (.+)$/gm)].map(([, term = ""]) => term);
  return terms.filter((term) => !plainWords.includes(term));
}
