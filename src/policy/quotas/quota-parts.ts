import { isMap, type ParsedNode } from "yaml";
import { quotaBucketKey } from "../../core/quota/quota.js";
import { quoteText } from "../problems/problem.js";
import { readTextMatch, textMatchesMax } from "../services/descriptor-parts.js";
import type { TextMatch } from "../services/service-policy.js";
import { textMatchShape } from "../services/service-shapes.js";
import { Block } from "../text/block.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { readDescribedHeader } from "../text/service-texts.js";
import { keyRule, type TextRule, valueRule } from "../text/text-rules.js";
import {
  type QuotaClasses,
  type QuotaPart,
  type QuotaPartSource,
  quotaClassKey,
} from "./quota-policy.js";
import { quotaClassesShape, quotaPartShape } from "./quota-shapes.js";

/** Parts of one bucket. */
export const quotaPartsMax = 8;

/** Parts with a `default`: each doubles what Envoy has to tell apart. */
export const quotaDefaultsMax = 3;

/** Classes of one quota. */
export const quotaClassesMax = 16;

/** The bounds of a class's weight. */
export const quotaWeightBounds = { min: 1, max: 1_000 } as const;

/** What a part of a bucket is made from: one of these names, beside `as`. */
export const quotaPartSources = ["header", "query", "value"] as const;

/** Parts that stand alone. */
export const quotaPartWords = ["remote_address"] as const;

/** Reads `match`: headers that a request must have. */
export function readQuotaMatch(quota: Block): readonly TextMatch[] {
  const expected = "a list such as [{name: x-plan, exact: free}]";
  return quota.items("match", expected, textMatchesMax).flatMap((item) => {
    const place = quota.reader.required(item, "{name: x-plan, exact: free}");
    const match = place && Block.at(quota.reader, place, textMatchShape);
    return (match && readTextMatch(match, true)) ?? [];
  });
}

/** Reads `bucket`; undefined where something of it is wrong. */
export function readQuotaBucketParts(quota: Block): readonly QuotaPart[] | undefined {
  const { reader, fields } = quota;
  const expected = "a list of parts, such as [remote_address, {header: x-tenant, as: tenant}]";
  const field = reader.requiredField(fields, "bucket", expected);
  const nodes = field && reader.readList(field, expected);
  if (field === undefined || nodes === undefined) return undefined;
  if (nodes.length === 0 || nodes.length > quotaPartsMax) {
    const message = `a bucket of ${nodes.length} parts`;
    const bound = `1 to ${quotaPartsMax} parts`;
    return reader.report(field.key, { id: "HG160", message, expected: bound });
  }
  const parts = nodes.map((node) => readPart(reader, node));
  const known = parts.filter((part) => part !== undefined);
  const keys = new Set<string>();
  parts.forEach((part, index) => {
    const node = nodes[index];
    if (part !== undefined && node !== undefined) takeKey(reader, { node, key: part.key, keys });
  });
  if (known.filter(({ fallback }) => fallback !== undefined).length > quotaDefaultsMax) {
    const message = `"bucket" cannot have more than ${quotaDefaultsMax} parts with a default`;
    return reader.report(field.key, { id: "HG160", message });
  }
  return known.length === parts.length ? known : undefined;
}

/** A bucket's id is a map: each key stands once, and two of them are taken. */
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
    const why = isReserved ? "is a key of every bucket" : "is the key of another part";
    const expected = "another key, by which rateLimits knows it";
    reader.report(node, { id: "HG266", message: `${quoteText(key)} ${why}`, expected });
  }
  keys.add(key);
}

function readPart(reader: NodeReader, node: ParsedNode): QuotaPart | undefined {
  if (!isMap(reader.contentAt(node))) {
    const field = { name: "bucket", key: node, value: node };
    const what = "a part of a bucket that stands alone";
    const word = reader.readChoice(field, quotaPartWords, { id: "HG133", what });
    return word && { kind: "remoteAddress", key: word, fallback: undefined };
  }
  const block = Block.at(reader, node, quotaPartShape);
  if (block === undefined) return undefined;
  const [source, ...others] = quotaPartSources.filter((name) => block.field(name) !== undefined);
  for (const other of others) block.refusePair(other, source ?? other);
  const keyField = reader.requiredField(block.fields, "as", "the key that it has in rateLimits");
  const key = keyField && reader.readText(keyField, keyRule);
  const part = readSource(block, source, key ?? "");
  const fallback = block.text("default", valueRule);
  if (source === "value" && block.field("default") !== undefined) {
    return block.refusePair("default", source);
  }
  if (key === undefined || part === undefined || others.length > 0) return undefined;
  return { ...part, fallback };
}

function readSource(
  block: Block,
  source: (typeof quotaPartSources)[number] | undefined,
  key: string,
): QuotaPartSource | undefined {
  switch (source) {
    case undefined: {
      const isMissing = quotaPartSources.every((name) => block.isLeftOut(name));
      if (!isMissing) return undefined;
      const message = "a part does not say what it is made from";
      const expected = "header: a header's name, query: a parameter, or value: a text";
      return block.reader.report(block.fields.node, { id: "HG125", message, expected });
    }
    case "header": {
      const field = block.field(source);
      const header = field && readDescribedHeader(block.reader, field);
      return header === undefined ? undefined : { kind: "header", header, key };
    }
    case "query": {
      const parameter = block.text(source, keyRule);
      return parameter === undefined ? undefined : { kind: "query", parameter, key };
    }
    case "value": {
      const value = block.text(source, valueRule);
      return value === undefined ? undefined : { kind: "fixed", key, value };
    }
  }
}

/** A class is what a header says: it goes into bucket ids as it is. */
const classRule: TextRule = {
  charsMax: 128,
  forbidden: /[^ -~]/,
  expected: "a header's value of 1 to 128 printable ASCII characters",
};

/** Reads `classes` of a quota; undefined where it is left out, or wrong. */
export function readQuotaClasses(quota: Block): QuotaClasses | undefined {
  const block = quota.block("classes", quotaClassesShape);
  if (block === undefined) return undefined;
  const { reader, fields } = block;
  const headerField = reader.requiredField(fields, "header", "the header that tells the class");
  const header = headerField && readDescribedHeader(reader, headerField);
  const expected = "weights by the header's value, such as {gold: 3, free: 1}";
  const field = reader.requiredField(fields, "weights", expected);
  const rows = field && reader.readTextMap(field, { title: "weights", expected });
  if (field === undefined || rows === undefined) return undefined;
  if (rows.length === 0 || rows.length > quotaClassesMax) {
    const message = `"weights" of ${rows.length} classes`;
    const bound = `1 to ${quotaClassesMax} classes`;
    return reader.report(field.key, { id: "HG160", message, expected: bound });
  }
  const weights = rows.flatMap((row) => readWeight(reader, row));
  return header === undefined ? undefined : { header, weights: Object.fromEntries(weights) };
}

function readWeight(reader: NodeReader, row: Field): readonly (readonly [string, number])[] {
  const name = reader.readText({ ...row, value: row.key }, classRule);
  const weight = reader.readWhole(row, quotaWeightBounds);
  return name === undefined || weight === undefined ? [] : [[name, weight]];
}
