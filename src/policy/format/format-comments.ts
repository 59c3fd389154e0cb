import {
  CST,
  type Document,
  isAlias,
  isCollection,
  isPair,
  isScalar,
  Lexer,
  type Node,
  visit,
} from "yaml";
import { SourceText } from "../problems/source-text.js";

/** A comment of a text. */
interface Comment {
  readonly start: number;
  /** After the `#`. */
  readonly text: string;
  readonly line: number;
  readonly column: number;
  /** Whether only white space precedes it in its line. */
  readonly isAlone: boolean;
}

/** A text without its comments, at the same offsets. */
interface UncommentedText {
  readonly text: string;
  readonly comments: readonly Comment[];
}

/** Removes the comments from a text. */
export function stripComments(text: string): UncommentedText {
  const source = new SourceText({ file: "", text }, 0);
  const comments: Comment[] = [];
  let bare = "";
  let offset = 0;
  let isScalarNext = false;
  for (const lexeme of new Lexer().lex(text)) {
    // The lexer's own marks stand for no character.
    const isMark = lexeme === CST.BOM || lexeme === CST.DOCUMENT || lexeme === CST.FLOW_END;
    if (isMark || (!isScalarNext && lexeme === CST.SCALAR)) {
      isScalarNext = lexeme === CST.SCALAR;
      continue;
    }
    const isComment = !isScalarNext && CST.tokenType(lexeme) === "comment";
    if (isComment) {
      const { line, column } = source.position(offset);
      const isAlone = text.slice(offset - column + 1, offset).trim() === "";
      comments.push({ start: offset, text: lexeme.slice(1), line, column, isAlone });
    }
    bare += isComment ? " ".repeat(lexeme.length) : lexeme;
    offset += lexeme.length;
    isScalarNext = false;
  }
  return { text: bare, comments };
}

/** A name of a map or an item of a list, with its position and its container. */
interface Item {
  readonly start: number;
  /** The node that receives the comments and blank lines before it. */
  readonly lead: Node;
  /** Its value; undefined for a name without a value. */
  readonly value: Node | undefined;
  readonly holder: Holder;
  /** Whether it is the first in its map or list. */
  readonly isFirst: boolean;
  /** The item of a list that begins at the same place. */
  readonly outer: Item | undefined;
}

/** A map or list. */
interface Holder {
  readonly node: Node;
  readonly end: number;
  /** 1-based; for a list, that of its dashes. */
  readonly column: number;
  readonly isFlow: boolean;
  /** The item whose value it is; undefined for the file as a whole. */
  readonly of: Item | undefined;
}

/**
 * Restores comments in the document of the bare text, and blank lines between parts that have lines
 * of their own. A comment belongs to what follows it, unless it is indented deeper. A comment after
 * a value belongs to the value.
 */
export function restoreComments(document: Document, bare: UncommentedText, original: string): void {
  visit(document, (_, node) => {
    if (isScalar(node) || isCollection(node) || isAlias(node)) delete node.spaceBefore;
  });
  new CommentPlacer(document, bare, original).place();
}

class CommentPlacer {
  readonly #document: Document;
  readonly #comments: readonly Comment[];
  readonly #source: SourceText;
  readonly #blankLines: ReadonlySet<number>;
  /** In the order of the text, outer ones first. */
  readonly #items: Item[] = [];
  /** Number of items before the comment that is being placed. */
  #passedCount = 0;
  /** Comments before an item, each in a line of its own. */
  readonly #before = new Map<Item, Comment[]>();

  constructor(document: Document, { comments }: UncommentedText, original: string) {
    this.#document = document;
    this.#comments = comments;
    this.#source = new SourceText({ file: "", text: original }, 0);
    const lines = original.split("\n");
    this.#blankLines = new Set(lines.flatMap((line, i) => (line.trim() === "" ? [i + 1] : [])));
    this.#collect(document.contents ?? undefined, undefined);
  }

  place(): void {
    for (const comment of this.#comments) {
      while ((this.#items[this.#passedCount]?.start ?? comment.start) < comment.start) {
        this.#passedCount += 1;
      }
      if (comment.isAlone) this.#placeAlone(comment);
      else this.#placeBehind(comment);
    }
    for (const item of this.#items) this.#writeBefore(item);
  }

  #collect(node: Node | undefined, of: Item | undefined): void {
    if (!isCollection(node)) return;
    const [start = 0, end = 0] = node.range ?? [];
    const { column } = this.#source.position(start);
    const holder: Holder = { node, end, column, isFlow: node.flow === true, of };
    node.items.forEach((each, i) => {
      const lead = nodeOf(isPair(each) ? each.key : each);
      const value = isPair(each) ? nodeOf(each.value) : lead;
      if (lead === undefined) return;
      const itemStart = lead.range?.[0] ?? start;
      const before = this.#items.at(-1);
      const outer = before?.start === itemStart ? (before.outer ?? before) : undefined;
      const item = { start: itemStart, lead, value, holder, isFirst: i === 0, outer };
      this.#items.push(item);
      this.#collect(value, item);
    });
  }

  #placeAlone(comment: Comment): void {
    const last = this.#items[this.#passedCount - 1];
    const next = this.#items[this.#passedCount];
    const flow = flowAround(last, comment);
    if (flow !== undefined) {
      if (next !== undefined && next.start < flow.end) this.#add(next, comment);
      else append(flow.node, comment.text);
      return;
    }
    const isNext = next !== undefined && comment.column <= next.holder.column;
    const holder = isNext ? undefined : holderAt(last, comment.column);
    if (holder !== undefined) append(holder.node, comment.text);
    else if (next !== undefined) this.#add(next, comment);
    else append(this.#document, comment.text);
  }

  /** Places a comment after a value. One after the name of a map or list moves before it. */
  #placeBehind(comment: Comment): void {
    const last = this.#items[this.#passedCount - 1];
    const flow = flowAround(last, comment);
    let item = last;
    while (item !== undefined && item.holder !== flow && item.holder.isFlow) item = item.holder.of;
    if (item === undefined || this.#endLine(item, comment) < comment.line) {
      this.#placeAlone(comment);
      return;
    }
    const { value } = item;
    const isBlock = isScalar(value) && value.type?.startsWith("BLOCK") === true;
    const isBehind = value !== undefined && (value.range?.[1] ?? 0) <= comment.start && !isBlock;
    if (isBehind && (value.range?.[0] ?? 0) < comment.start) append(value, comment.text, ";");
    else this.#add(item, comment);
  }

  /** Returns the line on which the part of an item before the comment ends. */
  #endLine({ start, value }: Item, comment: Comment): number {
    const [from = start, to = start] = value?.range ?? [];
    const end = from < comment.start ? Math.min(to, comment.start) : start;
    return this.#source.position(Math.max(start, end)).line;
  }

  #add(item: Item, comment: Comment): void {
    const target = item.outer ?? item;
    const known = this.#before.get(target);
    if (known === undefined) this.#before.set(target, [comment]);
    else known.push(comment);
  }

  /** Blank lines in a row become one, and none remain at the start of a map or list. */
  #writeBefore(item: Item): void {
    const { lead, holder } = item;
    const comments = (this.#before.get(item) ?? []).toSorted((a, b) => a.line - b.line);
    const { line } = this.#source.position(item.start);
    const firstLine = Math.min(line, ...comments.map((comment) => comment.line));
    const isBlank = !item.isFirst && !holder.isFlow && this.#blankLines.has(firstLine - 1);
    if (isBlank && item.outer === undefined) lead.spaceBefore = true;
    if (comments.length === 0) return;
    const texts: string[] = [];
    for (const comment of comments) {
      if (texts.length > 0 && this.#blankLines.has(comment.line - 1)) texts.push("");
      texts.push(comment.text);
    }
    const isApart = (comments.at(-1)?.line ?? line) < line && this.#blankLines.has(line - 1);
    if (item === this.#items[0] && isApart) {
      // A comment at the start of a file belongs to the file, wherever its first name moves.
      this.#document.commentBefore = texts.join("\n");
      return;
    }
    if (isApart) texts.push("");
    lead.commentBefore = texts.join("\n");
  }
}

function nodeOf(value: unknown): Node | undefined {
  return isScalar(value) || isCollection(value) || isAlias(value) ? value : undefined;
}

/** Returns the map or list in braces or brackets that contains a comment. */
function flowAround(last: Item | undefined, { start }: Comment): Holder | undefined {
  let holder = last?.holder;
  while (holder !== undefined && !(holder.isFlow && holder.end > start)) holder = holder.of?.holder;
  return holder;
}

/** Returns the innermost map or list around an item that is not indented deeper than a comment. */
function holderAt(last: Item | undefined, column: number): Holder | undefined {
  let holder = last?.holder;
  while (holder !== undefined && (holder.isFlow || holder.column > column)) {
    holder = holder.of?.holder;
  }
  // At the left edge, a comment after the last name belongs to the file.
  return holder?.of === undefined ? undefined : holder;
}

function append(node: { comment?: string | null | undefined }, text: string, by = "\n"): void {
  node.comment = node.comment ? `${node.comment}${by}${text}` : text;
}
