import type { ErrorCode, YAMLError } from "yaml";

/**
 * Our words for an error of the YAML library: its own may repeat the user's text, and speak of
 * implicit keys and block scalars.
 */
export function syntaxMessage({ code, message }: Pick<YAMLError, "code" | "message">): string {
  const known = detailedMessages.find(([pattern]) => pattern.test(message));
  return known === undefined ? generalMessages[code] : known[1];
}

/** By the library's words (2.9.1), where one kind stands for several mistakes. */
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

/** By kind of error, where its words say no more. */
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
