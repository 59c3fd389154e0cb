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
  [/followed by map values$/, "a `:` and a value are missing after this name"],
  [/without - indicator$/, "a `-` is missing before this item"],
  [/^Missing , (?:or : )?between/, "a `,` is missing between two items"],
  [/white space/, "a space is missing before this"],
  [/^Missing space after :/, "a space is missing after the `:`"],
  [/must start at the same column$/, "the items of one map or list must start at the same column"],
];

/** By kind of error, where its words say no more. */
const generalMessages: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: "an alias cannot carry an anchor or a tag",
  BAD_ALIAS: "an anchor or alias has no name; a text that begins with `*` or `&` needs quotes",
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
