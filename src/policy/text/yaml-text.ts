import {
  Composer,
  CST,
  type ErrorCode,
  Lexer,
  type ParsedNode,
  Parser,
  type YAMLError,
} from "yaml";
import type { ProblemId } from "../problems/problem.js";
import type { ProblemLog } from "../problems/problem-log.js";
import type { SourceText, TextRange } from "../problems/source-text.js";

/** Maximum depth of nested collections: about 45 levels of descriptors. */
export const nestingMax = 100;

/** Maximum number of lexemes of one file. Each costs about 1 kB of memory and 2 us. */
export const lexemesMax = 2_000_000;

/**
 * Maximum number of aliases in one file. Each may be a problem of its own. Ten thousand limits that
 * all repeat one part fit.
 */
export const aliasesMax = 10_000;

/** Maximum number of syntax problems reported per file. Later ones are mostly consequences. */
export const syntaxProblemsMax = 10;

/** Maximum indentation that is skipped to point at the text after it. */
const indentCharsMax = 256;

/** Problem of a text that is nested deeper than `nestingMax`. */
export const nestingFinding = {
  id: "HG108",
  message: "nested too deeply",
  expected: `at most ${nestingMax} nested maps and lists`,
} as const;

/** Result of reading a file's text as YAML. */
type YamlText =
  | { readonly kind: "root"; readonly node: ParsedNode; readonly hasAliases: boolean }
  /** The text has only comments and white space; not reported. */
  | { readonly kind: "empty" }
  /** The problems are reported; nothing in the text can be trusted. */
  | { readonly kind: "unreadable" };

/** A control character (CR outside CRLF), a lone surrogate, or the mark of a failed decoding. */
const forbiddenCharacter = /\r(?!\n)|(?![\t\n\r])[\p{Cc}\p{Cs}\ufeff\ufffd\ufffe\uffff]/u;

/**
 * Reads a text as one YAML 1.2 document (core schema), in time linear to its length, and reports
 * its problems. Tags are reported and left in the tree. Anchors and aliases are left in it without
 * being expanded. Keys are not compared: the reader of a map does that, in linear time.
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
    const split = splitTokens(source, reporter);
    if (split === undefined) return { kind: "unreadable" };
    const node = composeDocument(split.tokens, source, reporter);
    if (reporter.hasSyntaxProblem) return { kind: "unreadable" };
    if (node === undefined) return { kind: "empty" };
    return { kind: "root", node, hasAliases: split.aliasCount > 0 };
  } catch {
    // Every error that the library throws (an exhausted stack, or the stop below) becomes a
    // problem: no text may end the process.
    if (!reporter.hasSyntaxProblem) {
      reporter.syntax({ start: 0, end: 1 }, { code: "RESOURCE_EXHAUSTION", message: "" });
    }
    return { kind: "unreadable" };
  }
}

interface SplitText {
  readonly tokens: readonly CST.Token[];
  readonly aliasCount: number;
}

/** Splits the text and refuses unsupported syntax. Undefined if a bound is reached. */
function splitTokens(source: SourceText, reporter: SyntaxReporter): SplitText | undefined {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let lexemeCount = 0;
  let aliasCount = 0;
  let isScalarNext = false;
  for (const lexeme of new Lexer().lex(source.text)) {
    const start = parser.offset;
    if (!isScalarNext) {
      reporter.lexeme(lexeme, start);
      // A lexeme that begins with `*` is always an alias: a marker lexeme precedes each scalar.
      if (lexeme.startsWith("*")) aliasCount += 1;
      if (aliasCount > aliasesMax) {
        return reporter.refuse("HG113", { start, end: start + lexeme.length });
      }
    }
    isScalarNext = !isScalarNext && lexeme === CST.SCALAR;
    for (const token of parser.next(lexeme)) tokens.push(token);
    lexemeCount += 1;
    if (lexemeCount > lexemesMax) return reporter.refuse("HG109", rangeAt(start));
    // The library builds the tree recursively, so the depth is bounded before that.
    if (parser.stack.length > nestingMax) return reporter.refuse("HG108", rangeAt(start));
  }
  for (const token of parser.end()) tokens.push(token);
  return { tokens, aliasCount };
}

/** Builds the tree of the first document, and refuses later ones. */
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
  // The library keeps errors as an Error with a stack: 10 us each, millions in a hostile text. This
  // handler replaces its own and stops early. Without it, `errors` below still reports.
  Object.assign(composer, { onError: reporter.onComposeError });
  let documentCount = 0;
  for (const token of tokens) {
    if (token.type === "directive") continue;
    if (token.type === "error") {
      const { message } = token;
      reporter.syntax(rangeAt(token.offset), { code: "UNEXPECTED_TOKEN", message });
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
      reporter.syntax({ start: error.pos[0], end: error.pos[1] }, error);
    }
    return document.contents ?? undefined;
  }
  return undefined;
}

type ComposeErrorSource =
  | number
  | readonly [number, number, ...number[]]
  | { readonly offset: number; readonly source?: string };

/** Arguments of the composer's error handler. Source: yaml 2.9.1, compose/composer.d.ts. */
type ComposeError = readonly [
  source: ComposeErrorSource,
  code: ErrorCode,
  message: string,
  isWarning?: boolean,
];

/** Converts the errors of the YAML library to Headgate's problems. */
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

  /** Refuses tags and directives everywhere: no other lexeme begins with these characters. */
  lexeme(lexeme: string, start: number): void {
    if (!lexeme.startsWith("!") && !lexeme.startsWith("%")) return;
    this.refuse("HG105", { start, end: start + lexeme.length });
  }

  refuse(id: keyof typeof refusals, range: TextRange): undefined {
    this.#log.report(this.#source, range, { id, ...refusals[id] });
    return undefined;
  }

  syntax(range: TextRange, error: Pick<YAMLError, "code" | "message">): void {
    this.#syntaxCount += 1;
    if (this.#syntaxCount > syntaxProblemsMax) return;
    const id: ProblemId = error.code === "RESOURCE_EXHAUSTION" ? "HG109" : "HG101";
    // A range may begin with the indentation before the relevant place.
    const ahead = this.#source.text.slice(range.start, range.start + indentCharsMax);
    const start = range.start + (/^ */.exec(ahead)?.[0].length ?? 0);
    const end = Math.max(range.end, start + 1);
    this.#log.report(this.#source, { start, end }, { id, message: syntaxMessage(error) });
  }

  /** The composer's error handler. Throws after enough problems, to stop the composer. */
  readonly onComposeError = (...[source, code, message, isWarning]: ComposeError): void => {
    // Tags were already refused as lexemes.
    if (isWarning === true || code === "TAG_RESOLVE_FAILED") return;
    if (this.#syntaxCount >= syntaxProblemsMax) throw new Error("enough is known");
    this.syntax(composeErrorRange(source), { code, message });
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
  HG105: { message: "tags and directives are not supported", expected: "plain YAML" },
  HG106: { message: "a second document starts here", expected: "one document in a file" },
  HG108: { message: nestingFinding.message, expected: nestingFinding.expected },
  HG109: {
    message: "the file has too many parts",
    expected: `at most ${lexemesMax} tokens in a file`,
  },
  HG113: { message: "the file has too many aliases", expected: `at most ${aliasesMax} in a file` },
} as const;

/**
 * Returns Headgate's wording for an error of the YAML library. The library's message may repeat the
 * user's text, and mentions implicit keys and block scalars.
 */
function syntaxMessage({ code, message }: Pick<YAMLError, "code" | "message">): string {
  const known = detailedMessages.find(([pattern]) => pattern.test(message));
  return known === undefined ? generalMessages[code] : known[1];
}

/** Messages by the library's wording (2.9.1), for error codes that cover several mistakes. */
const detailedMessages: ReadonlyArray<readonly [RegExp, string]> = [
  [/end with a \]$/, "a list in brackets is not closed here: `]` is missing, or less indented"],
  [/end with a \}$/, "a map in braces is not closed here: `}` is missing, or less indented"],
  [/^Missing closing/, "the closing quote is missing"],
  [/followed by map values$/, "a `:` and a value are missing after this key"],
  [/without - indicator$/, "a `-` is missing before this item"],
  [/^Missing , (?:or : )?between/, "a `,` is missing between two items"],
  [/white space/, "a space is missing before this"],
  [/^Missing space after :/, "a space is missing after the `:`"],
  [/must start at the same column$/, "the items of one map or list must start at the same column"],
];

/** Messages by error code, if the library's wording adds nothing. */
const generalMessages: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: "an alias cannot carry an anchor or a tag",
  BAD_ALIAS: "an anchor or alias has no name; quote a text that starts with `*` or `&`",
  BAD_COLLECTION_TYPE: "a tag does not match its value",
  BAD_DIRECTIVE: "this directive cannot be parsed",
  BAD_DQ_ESCAPE: "this escape is unknown in double quotes",
  BAD_INDENT: "the indentation matches neither the line above nor an outer level",
  BAD_PROP_ORDER: "an anchor or tag is in the wrong place",
  BAD_SCALAR_START: "plain text cannot start with this character; quote it",
  BLOCK_AS_IMPLICIT_KEY: "a map or list cannot start on the line of another key",
  BLOCK_IN_FLOW: "indented maps and lists cannot be inside brackets",
  DUPLICATE_KEY: "this key is defined twice",
  IMPOSSIBLE: "this cannot be parsed",
  KEY_OVER_1024_CHARS: "the `:` after a key must come within 1024 characters",
  MISSING_CHAR: "a character is missing here: a `:`, `,`, quote, bracket or space",
  MULTILINE_IMPLICIT_KEY: "a key and its `:` must be on one line",
  MULTIPLE_ANCHORS: "a value can have only one anchor",
  MULTIPLE_DOCS: "a second document starts here",
  MULTIPLE_TAGS: "a value can have only one tag",
  NON_STRING_KEY: "a key must be text",
  RESOURCE_EXHAUSTION: "the file is too complex to parse",
  TAB_AS_INDENT: "the indentation contains a tab; use spaces",
  TAG_RESOLVE_FAILED: "this tag is unknown",
  UNEXPECTED_TOKEN: "this is not expected here",
};
