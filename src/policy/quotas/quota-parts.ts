import { isMap, type ParsedNode } from "yaml";
import { quotaBucketKey, quotaClassKey } from "../../core/quota/quota.js";
import { quoteText } from "../problems/problem.js";
import type { DescriptorPart } from "../services/descriptor-parts.js";
import type { Block } from "../text/block.js";
import { any, choice, list, readBy, ruledText, whole } from "../text/form.js";
import type { NodeReader } from "../text/node-reader.js";
import { field, innerBy, object, readField } from "../text/object.js";
import { describedHeader } from "../text/service-texts.js";
import { keyRule, type TextRule, valueRule } from "../text/text-rules.js";

/** Source of one entry of a bucket id: a part that Envoy's quota filter can build. */
export type QuotaPart = QuotaPartSource & {
  /**
   * The value if a request does not contain it; undefined: the quota ignores such a request. Always
   * undefined for an address and for a fixed value.
   */
  readonly fallback: string | undefined;
};

/** The parts of descriptors that a bucket may consist of. */
export type QuotaPartSource = Extract<
  DescriptorPart,
  { readonly kind: "remoteAddress" | "header" | "query" | "fixed" }
>;

/** Maximum number of parts of one bucket. */
export const quotaPartsMax = 8;

/** Maximum number of parts with a `default`: each doubles the cases that Envoy distinguishes. */
export const quotaDefaultsMax = 3;

/** Maximum number of classes of one quota. */
export const quotaClassesMax = 16;

/** Sources of a part of a bucket: exactly one of these, beside `as`. */
const sources = ["header", "query", "value"] as const;

const part = object(
  {
    title: "a part of a bucket",
    docs: "One entry of a bucket, and its source.",
    needed: [sources],
    clashing: [sources, ["value", "default"]],
  },
  {
    header: field(
      describedHeader,
      "The value of a request header, or of a pseudo header such as `:path`.",
    ),
    query: field(ruledText(keyRule), "The value of a query parameter."),
    value: field(ruledText(valueRule), "A fixed value."),
    as: field(
      ruledText(keyRule),
      "The key of the entry in `rateLimits`. `quota` and `class` are reserved.",
      { needs: "the key that it has in rateLimits" },
    ),
    default: field(
      ruledText(valueRule),
      "The value if the request has none. Default: the quota ignores such requests.",
      { as: "fallback" },
    ),
  },
);

const partWord = choice({ what: "a part of a bucket that stands alone" }, "remote_address");
const partMap = innerBy(part, readPart);

const bucketPart = readBy<QuotaPart>(any(partWord, partMap), (reader, place) => {
  if (isMap(reader.contentOf(place))) return partMap.read(reader, place);
  const word = partWord.read(reader, place);
  return word && { kind: "remoteAddress", key: word, fallback: undefined };
});

/** Expected content of `bucket`, for messages. */
export const bucketExpected =
  "a list of parts, such as [remote_address, {header: x-tenant, as: tenant}]";

/** `bucket`; undefined if any of it is wrong. */
export const bucketParts = readBy<readonly QuotaPart[]>(
  list(bucketPart, quotaPartsMax, 1),
  (reader, place) => {
    const nodes = reader.readList(place, bucketExpected);
    if (nodes === undefined) return undefined;
    if (nodes.length === 0 || nodes.length > quotaPartsMax) {
      const message = `a bucket of ${nodes.length} parts`;
      const bound = `1 to ${quotaPartsMax} parts`;
      return reader.report(place.key, { id: "HG160", message, expected: bound });
    }
    const keys = new Set<string>();
    const known = nodes.flatMap((node) => {
      const read = bucketPart.read(reader, { name: "bucket", key: node, value: node });
      if (read !== undefined) takeKey(reader, { node, key: read.key, keys });
      return read ?? [];
    });
    if (known.filter(({ fallback }) => fallback !== undefined).length > quotaDefaultsMax) {
      const message = `"bucket" cannot have more than ${quotaDefaultsMax} parts with a default`;
      return reader.report(place.key, { id: "HG160", message });
    }
    return known.length === nodes.length ? known : undefined;
  },
);

/** Refuses repeated and reserved keys: a bucket's id is a map, and two keys are reserved. */
function takeKey(
  reader: NodeReader,
  {
    node,
    key,
    keys,
  }: { readonly node: ParsedNode; readonly key: string; readonly keys: Set<string> },
): void {
  const isReserved = key === quotaBucketKey || key === quotaClassKey;
  if (isReserved || keys.has(key)) {
    const why = isReserved ? "is reserved in every bucket" : "is the key of another part";
    const expected = "another key, which rateLimits uses";
    reader.report(node, { id: "HG266", message: `${quoteText(key)} ${why}`, expected });
  }
  keys.add(key);
}

function readPart(block: Block): QuotaPart | undefined {
  const [source, ...others] = sources.filter((name) => block.field(name) !== undefined);
  for (const other of others) block.refusePair(other, source ?? other);
  const key = readField(part, block, "as");
  const made = readSource(block, source, key ?? "");
  const fallback = readField(part, block, "default");
  if (source === "value" && block.field("default") !== undefined) {
    return block.refusePair("default", source);
  }
  if (key === undefined || made === undefined || others.length > 0) return undefined;
  return { ...made, fallback };
}

function readSource(
  block: Block,
  source: (typeof sources)[number] | undefined,
  key: string,
): QuotaPartSource | undefined {
  if (source === undefined) {
    if (!sources.every((name) => block.isLeftOut(name))) return undefined;
    const message = "the part has no source";
    const expected = "header: a header name, query: a parameter, or value: a text";
    return block.reader.report(block.fields.node, { id: "HG125", message, expected });
  }
  const said = readField(part, block, source);
  if (said === undefined) return undefined;
  switch (source) {
    case "header":
      return { kind: "header", header: said, key };
    case "query":
      return { kind: "query", parameter: said, key };
    case "value":
      return { kind: "fixed", key, value: said };
  }
}

/** A class is a header's value, which goes unchanged into bucket ids. */
const classRule: TextRule = {
  charsMax: 128,
  forbidden: /[^ -~]/,
  expected: "a header's value of 1 to 128 printable ASCII characters",
};

/** The bounds of a class's weight. */
export const quotaWeightBounds = { min: 1, max: 1_000 } as const;

const weight = whole(quotaWeightBounds);

const weightsExpected = "weights by the header's value, such as {gold: 3, free: 1}";

const weights = readBy<Readonly<Record<string, number>>>(
  { kind: "texts", key: /^[ -~]{1,128}$/, value: weight, max: quotaClassesMax },
  (reader, place) => {
    const rows = reader.readTextMap(place, { title: "weights", expected: weightsExpected });
    if (rows === undefined) return undefined;
    if (rows.length === 0 || rows.length > quotaClassesMax) {
      const message = `"weights" of ${rows.length} classes`;
      const bound = `1 to ${quotaClassesMax} classes`;
      return reader.report(place.key, { id: "HG160", message, expected: bound });
    }
    const pairs = rows.flatMap((row) => {
      const name = reader.readText({ ...row, value: row.key }, classRule);
      const own = weight.read(reader, row);
      return name === undefined || own === undefined ? [] : [[name, own] as const];
    });
    return Object.fromEntries(pairs);
  },
);

/** `classes` of a quota. */
export const quotaClasses = object(
  {
    title: "a quota's classes",
    docs: "Classes that get more of a limit than others when demand exceeds it.",
  },
  {
    header: field(describedHeader, "The request header that contains the class.", {
      needs: "the header that tells the class",
    }),
    weights: field(
      weights,
      "Weights by header value. A request with no listed value has weight 1.",
      { isGenerated: false, needs: weightsExpected },
    ),
  },
  {
    data: ({ header, weights: by }) =>
      header === undefined || by === undefined ? undefined : { header, weights: by },
  },
);
