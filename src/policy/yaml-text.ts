import { Composer, CST, type ErrorCode, Lexer, type ParsedNode, Parser } from "yaml";
import type { ProblemId } from "./problem.js";
import type { ProblemLog } from "./problem-log.js";
import type { SourceText, TextRange } from "./source-text.js";

/** Collections that may stand inside each other: about 45 levels of descriptors. */
export const nestingMax = 100;

/** Lexical parts of one file; memory and time follow this number, about 1 kB and 2 us each. */
export const lexemesMax = 2_000_000;

/** Syntax problems told per file: those after the first few are mostly its echoes. */
export const syntaxProblemsMax = 10;

/** What a file's text is as YAML. */
export type YamlText =
  | { readonly kind: "root"; readonly node: ParsedNode }
  /** Its problems are reported; nothing in it can be trusted. */
  | { readonly kind: "unreadable" };

/** Any control character, half of a pair, or mark of a failed decoding; CR only counts outside CRLF. */
const forbiddenCharacter = /\r(?!\n)|(?![\t\n\r])[\p{Cc}\p{Cs}\ufeff\ufffd\ufffe\uffff]/u;

/**
 * Reads a text as one YAML 1.2 document (core schema), in time linear to its length, and reports what
 * is wrong with it. Anchors, aliases and tags are reported and left in the tree; nothing is expanded.
 * Keys are not compared: the reader of a map does that, in linear time.
 */
export function readYaml(source: SourceText, log: ProblemLog): YamlText {
  const forbidden = forbiddenCharacter.exec(source.text);
  if (forbidden !== null) {
    log.report(source, rangeAt(forbidden.index), {
      id: "HG102",
      message: `the character ${codePointName(forbidden[0])} is not allowed`,
      expected: "UTF-8 text without control characters",
    });
    return { kind: "unreadable" };
  }
  const reporter = new SyntaxReporter(source, log);
  try {
    const tokens = splitTokens(source, reporter);
    if (tokens === undefined) return { kind: "unreadable" };
    const node = composeDocument(tokens, source, reporter);
    return node === undefined || reporter.hasSyntaxProblem
      ? { kind: "unreadable" }
      : { kind: "root", node };
  } catch {
    // Whatever the library throws (an exhausted stack, or our own stop) ends here as a problem: no
    // text may end the process.
    if (!reporter.hasSyntaxProblem) reporter.syntax({ start: 0, end: 1 }, "RESOURCE_EXHAUSTION");
    return { kind: "unreadable" };
  }
}

/** Splits the text; refuses what is not accepted. Undefined when a bound is reached. */
function splitTokens(source: SourceText, reporter: SyntaxReporter): CST.Token[] | undefined {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let lexemeCount = 0;
  let isScalarNext = false;
  for (const lexeme of new Lexer().lex(source.text)) {
    const range = { start: parser.offset, end: parser.offset + lexeme.length };
    if (!isScalarNext) reporter.lexeme(lexeme, range);
    isScalarNext = !isScalarNext && lexeme === CST.SCALAR;
    for (const token of parser.next(lexeme)) tokens.push(token);
    lexemeCount += 1;
    if (lexemeCount > lexemesMax) return reporter.refuse("HG109", range);
    // The library reads a tree by recursion, so depth ends before the tree is built.
    if (parser.stack.length > nestingMax) return reporter.refuse("HG108", range);
  }
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

/** Builds the tree of the first document; later ones are refused. */
function composeDocument(
  tokens: readonly CST.Token[],
  source: SourceText,
  reporter: SyntaxReporter,
): ParsedNode | undefined {
  const composer = new Composer({
    version: "1.2",
    schema: "core",
    merge: false,
    resolveKnownTags: false,
    uniqueKeys: false,
    prettyErrors: false,
    strict: true,
    logLevel: "silent",
  });
  // The library keeps every error as an Error with a stack: 10 us each, millions in a hostile text.
  // Its own handler is replaced by one that stops; should it stop using it, `doc.errors` still tells.
  Object.assign(composer, { onError: reporter.onComposeError });
  let documentCount = 0;
  for (const token of tokens) {
    if (token.type === "directive") continue;
    if (token.type === "error") {
      reporter.syntax({ start: token.offset, end: token.offset + 1 }, "UNEXPECTED_TOKEN");
      continue;
    }
    if (token.type === "document") documentCount += 1;
    if (documentCount > 1) {
      reporter.refuse("HG106", rangeAt(token.offset));
      break;
    }
    composer.next(token).next();
  }
  for (const document of composer.end(true, source.text.length)) {
    for (const error of document.errors) {
      reporter.syntax({ start: error.pos[0], end: error.pos[1] }, error.code);
    }
    return document.contents ?? undefined;
  }
  return undefined;
}

type ComposeErrorSource =
  | number
  | readonly [number, number, ...number[]]
  | { readonly offset: number; readonly source?: string };

/** Turns what the YAML library finds into problems of ours. */
class SyntaxReporter {
  readonly #source: SourceText;
  readonly #log: ProblemLog;
  #syntaxCount = 0;

  constructor(source: SourceText, log: ProblemLog) {
    this.#source = source;
    this.#log = log;
  }

  get hasSyntaxProblem(): boolean {
    return this.#syntaxCount > 0;
  }

  /** Refuses a lexeme that stands for something we do not accept. */
  lexeme(lexeme: string, range: TextRange): void {
    const type = CST.tokenType(lexeme);
    if (type === "alias" || type === "anchor") this.refuse("HG104", range);
    else if (type === "tag" || type === "directive-line") this.refuse("HG105", range);
  }

  refuse(id: keyof typeof refusals, range: TextRange): undefined {
    this.#log.report(this.#source, range, { id, ...refusals[id] });
    return undefined;
  }

  syntax(range: TextRange, code: ErrorCode): void {
    this.#syntaxCount += 1;
    if (this.#syntaxCount > syntaxProblemsMax) return;
    const id: ProblemId = code === "RESOURCE_EXHAUSTION" ? "HG109" : "HG101";
    this.#log.report(this.#source, range, { id, message: syntaxMessages[code] });
  }

  /** The composer's error handler. Throws once enough is known, to stop it. */
  readonly onComposeError = (
    source: ComposeErrorSource,
    code: ErrorCode,
    _message: string,
    isWarning?: boolean,
  ): void => {
    // Tags and aliases are refused as lexemes already.
    if (isWarning === true || code === "TAG_RESOLVE_FAILED" || code === "BAD_ALIAS") return;
    if (this.#syntaxCount >= syntaxProblemsMax) throw new Error("enough is known");
    this.syntax(composeErrorRange(source), code);
  };
}

function composeErrorRange(source: ComposeErrorSource): TextRange {
  if (typeof source === "number") return rangeAt(source);
  if (!("offset" in source)) return { start: source[0], end: source[1] };
  return { start: source.offset, end: source.offset + (source.source?.length ?? 1) };
}

function rangeAt(offset: number): TextRange {
  return { start: offset, end: offset + 1 };
}

function codePointName(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

const refusals = {
  HG104: { message: "anchors and aliases are not accepted", expected: "the part written out" },
  HG105: { message: "tags and directives are not accepted", expected: "plain YAML" },
  HG106: { message: "a second document begins here", expected: "one document in a file" },
  HG108: {
    message: "nested too deeply",
    expected: `at most ${nestingMax} maps and lists inside each other`,
  },
  HG109: {
    message: "the file has too many parts",
    expected: `at most ${lexemesMax} words, marks and spaces in a file`,
  },
} as const;

/** Our words for the library's errors: its own may repeat the text. */
const syntaxMessages: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: "an alias cannot carry an anchor or a tag",
  BAD_ALIAS: "an anchor or alias has no name",
  BAD_COLLECTION_TYPE: "a tag does not fit its value",
  BAD_DIRECTIVE: "this directive is not readable",
  BAD_DQ_ESCAPE: "this escape is unknown in double quotes",
  BAD_INDENT: "the indentation fits neither the line above nor an outer level",
  BAD_PROP_ORDER: "an anchor or tag stands in the wrong place",
  BAD_SCALAR_START: "plain text cannot begin with this character; put it into quotes",
  BLOCK_AS_IMPLICIT_KEY: "a map or list cannot begin on the line of another name",
  BLOCK_IN_FLOW: "indented maps and lists cannot stand inside brackets",
  DUPLICATE_KEY: "this name stands twice",
  IMPOSSIBLE: "this is not readable",
  KEY_OVER_1024_CHARS: "the `:` after a name must come within 1024 characters",
  MISSING_CHAR: "a character is missing here: a `:`, `,`, quote, bracket or space",
  MULTILINE_IMPLICIT_KEY: "a name and its `:` must stand on one line",
  MULTIPLE_ANCHORS: "a value can have one anchor only",
  MULTIPLE_DOCS: "a second document begins here",
  MULTIPLE_TAGS: "a value can have one tag only",
  NON_STRING_KEY: "a name must be text",
  RESOURCE_EXHAUSTION: "the file is too complex to read",
  TAB_AS_INDENT: "a tab stands in the indentation; use spaces",
  TAG_RESOLVE_FAILED: "this tag is unknown",
  UNEXPECTED_TOKEN: "this is not expected here",
};
