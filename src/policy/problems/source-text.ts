import { visibleText } from "./problem.js";

/** A piece of a source by its offsets in UTF-16 units: `start` inclusive, `end` exclusive. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

/** Maximum width of an excerpt of a line, in UTF-16 units. */
export const excerptCharsMax = 100;

/** Characters of a long line that an excerpt shows before the place. */
const excerptLeadChars = 40;

/** One file of a policy, which maps offsets to lines. Lines end at LF or CRLF. */
export class SourceText {
  /** The caller's name of the file. */
  readonly file: string;
  /** Position among the sources, 0-based. */
  readonly order: number;
  /** Without a byte order mark, so that columns are what an editor shows. */
  readonly text: string;
  readonly #lineStarts: readonly number[];

  /** `order` is the position among the policy's sources. */
  constructor(source: { readonly file: string; readonly text: string }, order: number) {
    this.file = source.file;
    this.order = order;
    this.text = source.text.startsWith("\ufeff") ? source.text.slice(1) : source.text;
    this.#lineStarts = findLineStarts(this.text);
  }

  /** Returns the 1-based line and column of an offset; one beyond the end counts as the end. */
  position(offset: number): { readonly line: number; readonly column: number } {
    const at = Math.max(0, Math.min(offset, this.text.length));
    const index = this.#lineIndex(at);
    return { line: index + 1, column: at - (this.#lineStarts[index] ?? 0) + 1 };
  }

  /** Returns the line of a range's start, at most `excerptCharsMax`, and the range's part in it. */
  excerpt(range: TextRange): { readonly text: string; readonly start: number; length: number } {
    const { line, column } = this.position(range.start);
    const lineStart = this.#lineStarts[line - 1] ?? 0;
    const lineText = this.text.slice(lineStart, this.#lineEnd(line));
    const offset = column - 1;
    const isLong = lineText.length > excerptCharsMax;
    const from = isLong ? Math.max(0, offset - excerptLeadChars) : 0;
    const to = Math.min(lineText.length, from + excerptCharsMax);
    const before = `${from > 0 ? "..." : ""}${lineText.slice(from, offset)}`;
    const markedEnd = Math.max(offset, Math.min(to, range.end - lineStart));
    const marked = lineText.slice(offset, markedEnd);
    const after = `${lineText.slice(markedEnd, to)}${to < lineText.length ? "..." : ""}`;
    return {
      text: visibleText(before + marked + after),
      start: characterCount(before),
      length: Math.max(1, characterCount(marked)),
    };
  }

  #lineIndex(offset: number): number {
    let low = 0;
    let high = this.#lineStarts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#lineStarts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #lineEnd(line: number): number {
    const next = this.#lineStarts[line];
    if (next === undefined) return this.text.length;
    return this.text[next - 2] === "\r" ? next - 2 : next - 1;
  }
}

function findLineStarts(text: string): readonly number[] {
  const starts = [0];
  let at = text.indexOf("\n");
  while (at !== -1) {
    starts.push(at + 1);
    at = text.indexOf("\n", at + 1);
  }
  return starts;
}

/** Counts code points, which approximate the columns of a line without knowledge of the font. */
function characterCount(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
