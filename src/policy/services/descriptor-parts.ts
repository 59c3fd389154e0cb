import { isMap } from "yaml";
import type { Block } from "../text/block.js";
import { any, choice, flag, readBy, ruledText, whole, words } from "../text/form.js";
import { field, inner, innerBy, items, object, readField } from "../text/object.js";
import { describedHeader, regex } from "../text/service-texts.js";
import { keyRule, type TextRule, valueRule } from "../text/text-rules.js";

/**
 * Source of one entry of a descriptor. Only Envoy's own filter can build the parts other than
 * `AskablePart`. Source: envoy.config.route.v3.RateLimit.Action.
 */
export type DescriptorPart =
  | AskablePart
  | { readonly kind: "sourceCluster"; readonly key: string }
  | { readonly kind: "destinationCluster"; readonly key: string }
  | {
      readonly kind: "maskedAddress";
      readonly key: string;
      /** Length of the prefix in bits, 0 to 32. Default 32. */
      readonly v4PrefixBits: number;
      /** 0 to 128. Default 128. */
      readonly v6PrefixBits: number;
    }
  | { readonly kind: "query"; readonly parameter: string; readonly key: string }
  | {
      readonly kind: "headerMatch" | "queryMatch";
      readonly key: string;
      readonly value: string;
      /** True: all must match. False: at least one must not match. Default true. */
      readonly isMatch: boolean;
      readonly matches: readonly TextMatch[];
    }
  | {
      readonly kind: "metadata";
      readonly key: string;
      readonly from: "dynamic" | "route";
      readonly namespace: string;
      readonly path: readonly string[];
      /** Value if the metadata has none; undefined: the descriptor is left out. */
      readonly fallback: string | undefined;
    }
  /** CEL over Envoy's attributes, evaluated by Envoy. */
  | { readonly kind: "expression"; readonly key: string; readonly cel: string };

/** Parts that ext_proc can send as well. */
export type AskablePart =
  | { readonly kind: "remoteAddress"; readonly key: string }
  | { readonly kind: "header"; readonly header: string; readonly key: string }
  | { readonly kind: "fixed"; readonly key: string; readonly value: string };

/** A condition on a header or query parameter. */
export interface TextMatch {
  readonly name: string;
  readonly test: "exact" | "prefix" | "suffix" | "contains" | "regex" | "present";
  /** Empty for `present`. */
  readonly text: string;
}

/** Maximum number of headers or parameters in one part. */
const textMatchesMax = 16;

/** Maximum number of steps in a metadata path. */
const metadataPathMax = 16;

/** Maximum length of the expression of a part, in characters. */
const expressionCharsMax = 1_024;

const key = ruledText(keyRule);
const value = ruledText(valueRule);

/** Ways to compare a text. */
const textTests = ["exact", "prefix", "suffix", "contains", "regex", "present"] as const;

/** A condition on a header or query parameter. */
const textMatch = object(
  {
    title: "a match",
    docs: "A condition on a header or query parameter.",
    needed: [textTests],
    clashing: [textTests],
  },
  {
    name: field(key, "The name of the header or parameter.", {
      needs: "the name of the header or parameter",
    }),
    exact: field(value, "The exact value."),
    prefix: field(value, "The prefix of the value."),
    suffix: field(value, "The suffix of the value."),
    contains: field(value, "A substring of the value."),
    regex: field(regex, "An RE2 regular expression that matches the whole value."),
    present: field(flag, "Matches if present, with any value."),
  },
);

const matchExpected = "a list such as [{name: x-plan, exact: free}]";

/** Conditions on headers, or on query parameters. */
function textMatches(isHeader: boolean, min: number) {
  const match = innerBy(
    textMatch,
    (block) => ({ match: readTextMatch(block, isHeader) }),
    "{name: x-plan, exact: free}",
  );
  return items(match, { expected: matchExpected, max: textMatchesMax, min });
}

/** Conditions on headers; wrong ones are reported and have no `match`. */
export const headerMatches = textMatches(true, 0);

function readTextMatch(block: Block, isHeader: boolean): TextMatch | undefined {
  const { reader, fields } = block;
  const nameField = block.declared("name", "the name of the header or parameter");
  const name = nameField && (isHeader ? describedHeader : key).read(reader, nameField);
  const [test, ...others] = textTests.filter((each) => block.field(each) !== undefined);
  for (const other of others) block.refusePair(other, test ?? other);
  if (test === undefined) {
    const isMissing = textTests.every((each) => block.isLeftOut(each));
    const message = "the match has no condition for the text";
    const expected = "exact, prefix, suffix, contains or regex: a text, or present: true";
    return isMissing ? reader.report(fields.node, { id: "HG125", message, expected }) : undefined;
  }
  const read = readField(textMatch, block, test);
  if (test === "present" && read !== true) {
    const message = '"present" can only be true';
    return block.report(test, { id: "HG133", message, expected: "present: true" });
  }
  if (name === undefined || read === undefined || others.length > 0) return undefined;
  return { name, test, text: read === true ? "" : String(read) };
}

const metadataPath = "a list of names that leads to a text, such as [payload, sub]";

const metadata = object(
  { title: "metadata of a part", docs: "A value from metadata." },
  {
    source: field(words("dynamic", "route"), "The source of the metadata.", {
      as: "from",
      default: "dynamic",
    }),
    namespace: field(key, "The filter namespace, such as envoy.filters.http.jwt_authn.", {
      needs: "a filter's namespace, such as envoy.filters.http.jwt_authn",
    }),
    path: field(
      items(key, { expected: metadataPath, max: metadataPathMax, min: 1 }),
      "The keys that lead to the value.",
      { needs: metadataPath },
    ),
    default: field(value, "The value if the metadata has none.", { as: "fallback" }),
  },
  {
    data: (read) => read,
    check(block, { path = [] }) {
      if (block.field("path") === undefined || path.length > 0) return;
      const message = '"path" is empty';
      block.report("path", { id: "HG125", message, expected: metadataPath });
    },
  },
);

const v4Bounds = { min: 0, max: 32 } as const;
const v6Bounds = { min: 0, max: 128 } as const;

const mask = object(
  {
    title: "a maskedRemoteAddress",
    docs: "The network prefix of the caller's address that counts.",
  },
  {
    v4: field(whole(v4Bounds), "Prefix length for IPv4.", {
      larger: "different",
      as: "v4PrefixBits",
      default: v4Bounds.max,
    }),
    v6: field(whole(v6Bounds), "Prefix length for IPv6.", {
      larger: "different",
      as: "v6PrefixBits",
      default: v6Bounds.max,
    }),
  },
);

/** Rule for CEL over Envoy's attributes. Only Envoy parses the expression. */
const expressionRule: TextRule = {
  charsMax: expressionCharsMax,
  forbidden: /(?![\n\t])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u,
  expected: `an expression in CEL of at most ${expressionCharsMax} characters`,
};

/** Sources of a part: exactly one of these, beside `as` and its own settings. */
const sources = {
  header: field(
    describedHeader,
    "The value of a request header, or of a pseudo header such as `:path`.",
  ),
  query: field(key, "The value of a query parameter."),
  headerMatch: field(textMatches(true, 1), "`value`, if the headers match."),
  queryMatch: field(textMatches(false, 1), "`value`, if the query parameters match."),
  metadata: field(inner(metadata), "A value from the dynamic metadata or the route metadata."),
  cel: field(ruledText(expressionRule), "A CEL expression over Envoy's attributes."),
  maskedRemoteAddress: field(inner(mask), "The caller's network. Envoy sets the key."),
};

const partSources = [
  "header",
  "query",
  "headerMatch",
  "queryMatch",
  "metadata",
  "cel",
  "maskedRemoteAddress",
] as const satisfies readonly (keyof typeof sources)[];

const part = object(
  {
    title: "a part of a descriptor",
    docs: "One entry of a descriptor, and its source.",
    clashing: [partSources, ["maskedRemoteAddress", "as"], ["header", "value"]],
    needed: [
      [...partSources, "value"],
      ["as", "maskedRemoteAddress"],
    ],
  },
  {
    ...sources,
    value: field(value, "A fixed value; with a match, the value where it matches."),
    expectMatch: field(flag, "Whether the match must succeed or fail.", { default: true }),
    as: field(key, "The key of the entry in `rateLimits`."),
  },
);

/** Parts without settings. Envoy defines the key of each. */
const partWordKinds = {
  remote_address: { kind: "remoteAddress", key: "remote_address" },
  masked_remote_address: {
    kind: "maskedAddress",
    key: "masked_remote_address",
    ...mask.defaults,
  },
  source_cluster: { kind: "sourceCluster", key: "source_cluster" },
  destination_cluster: { kind: "destinationCluster", key: "destination_cluster" },
} as const satisfies Readonly<Record<string, DescriptorPart>>;

const partWord = choice(
  { what: "a part of a descriptor that stands alone" },
  "remote_address",
  "masked_remote_address",
  "source_cluster",
  "destination_cluster",
);

const partMap = innerBy(part, readPart);

/** One part of a descriptor. */
export const descriptorPart = readBy<DescriptorPart>(any(partWord, partMap), (reader, place) => {
  if (isMap(reader.contentOf(place))) return partMap.read(reader, place);
  const word = partWord.read(reader, place);
  return word && partWordKinds[word];
});

function readPart(block: Block): DescriptorPart | undefined {
  const [source, ...others] = partSources.filter((name) => block.field(name) !== undefined);
  for (const other of others) block.refusePair(other, source ?? other);
  if (source === "maskedRemoteAddress") return readMask(block);
  block.declared("as", "the key that it has in rateLimits");
  const own = readField(part, block, "as");
  const made = readSource(block, {
    source,
    key: own ?? "",
    isMatch: readField(part, block, "expectMatch"),
  });
  const isMatch = source === "headerMatch" || source === "queryMatch";
  if (block.field("expectMatch") !== undefined && !isMatch) {
    const message = '"expectMatch" needs headerMatch or queryMatch';
    block.report("expectMatch", { id: "HG207", message, expected: "one of them next to it" });
  }
  if (!isMatch && source !== undefined && block.field("value") !== undefined) {
    return block.refusePair("value", source);
  }
  return own === undefined || others.length > 0 ? undefined : made;
}

/** Source of a part, and its key, which may be wrong. */
interface PartSource {
  readonly source: Exclude<(typeof partSources)[number], "maskedRemoteAddress"> | undefined;
  readonly key: string;
  readonly isMatch: boolean;
}

function readSource(block: Block, read: PartSource): DescriptorPart | undefined {
  const { source, key: own } = read;
  switch (source) {
    case undefined:
      return readFixed(block, own);
    case "header": {
      const header = readField(part, block, source);
      return header === undefined ? undefined : { kind: "header", header, key: own };
    }
    case "query": {
      const parameter = readField(part, block, source);
      return parameter === undefined ? undefined : { kind: "query", parameter, key: own };
    }
    case "headerMatch":
    case "queryMatch":
      return readMatch(block, source, read);
    case "metadata": {
      const { namespace, path = [], ...rest } = readField(part, block, source) ?? metadata.defaults;
      if (namespace === undefined || path.length === 0) return undefined;
      return { kind: "metadata", key: own, namespace, path, ...rest };
    }
    case "cel": {
      const cel = readField(part, block, source);
      return cel === undefined ? undefined : { kind: "expression", key: own, cel };
    }
  }
}

function readFixed(block: Block, own: string): DescriptorPart | undefined {
  const fixed = readField(part, block, "value");
  if (fixed !== undefined) return { kind: "fixed", key: own, value: fixed };
  const isMissing = [...partSources, "value"].every((name) => block.isLeftOut(name));
  if (!isMissing) return undefined;
  const message = "the part has no source";
  const expected = "header: a header name, value: a text, or another source";
  return block.reader.report(block.fields.node, { id: "HG125", message, expected });
}

function readMatch(
  block: Block,
  kind: "headerMatch" | "queryMatch",
  { key: own, isMatch }: PartSource,
): DescriptorPart | undefined {
  block.declared("value", "the value to use on a match");
  const matched = readField(part, block, "value");
  const read = readField(part, block, kind) ?? [];
  if (read.length === 0) {
    const message = `"${kind}" matches nothing`;
    return block.report(kind, { id: "HG125", message, expected: matchExpected });
  }
  const matches = read.flatMap(({ match }) => match ?? []);
  if (matched === undefined || matches.length < read.length) return undefined;
  return { kind, key: own, value: matched, isMatch, matches };
}

/** Reads `{v4: 24, v6: 64}`. Envoy always uses the key `masked_remote_address` for it. */
function readMask(block: Block): DescriptorPart | undefined {
  const bits = readField(part, block, "maskedRemoteAddress");
  for (const name of ["as", "value", "expectMatch"]) {
    if (block.field(name) !== undefined) block.refusePair(name, "maskedRemoteAddress");
  }
  return bits && { kind: "maskedAddress", key: "masked_remote_address", ...bits };
}
