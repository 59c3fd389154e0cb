import { isMap, type ParsedNode } from "yaml";
import { Block } from "../text/block.js";
import type { NodeReader } from "../text/node-reader.js";
import { readDescribedHeader, readRegex } from "../text/service-texts.js";
import { keyRule, type TextRule, valueRule } from "../text/text-rules.js";
import type { DescriptorPart, TextMatch } from "./service-policy.js";
import {
  descriptorPartShape,
  maskShape,
  metadataPartShape,
  partSources,
  textMatchShape,
} from "./service-shapes.js";

/** Headers or parameters that one part looks at. */
export const textMatchesMax = 16;

/** Steps of a path into metadata. */
export const metadataPathMax = 16;

/** Longest expression of a part, in characters. */
export const expressionCharsMax = 1_024;

/** Parts that stand alone: Envoy gives each its key, and no other. */
export const partWords = [
  "remote_address",
  "masked_remote_address",
  "source_cluster",
  "destination_cluster",
] as const;

const wholeMask = { v4PrefixBits: 32, v6PrefixBits: 128 } as const;

const partWordKinds: Readonly<Record<(typeof partWords)[number], DescriptorPart>> = {
  remote_address: { kind: "remoteAddress", key: "remote_address" },
  masked_remote_address: { kind: "maskedAddress", key: "masked_remote_address", ...wholeMask },
  source_cluster: { kind: "sourceCluster", key: "source_cluster" },
  destination_cluster: { kind: "destinationCluster", key: "destination_cluster" },
};

/** Reads one part of a descriptor; undefined where it is wrong. */
export function readDescriptorPart(
  reader: NodeReader,
  node: ParsedNode,
): DescriptorPart | undefined {
  if (!isMap(reader.contentAt(node))) {
    const field = { name: "descriptors", key: node, value: node };
    const what = "a part of a descriptor that stands alone";
    const word = reader.readChoice(field, partWords, { id: "HG133", what });
    return word && partWordKinds[word];
  }
  const block = Block.at(reader, node, descriptorPartShape);
  if (block === undefined) return undefined;
  const [source, ...others] = partSources.filter((name) => block.field(name) !== undefined);
  for (const other of others) block.refusePair(other, source ?? other);
  if (source === "maskedRemoteAddress") return readMask(block);
  const keyField = reader.requiredField(block.fields, "as", "the key that it has in rateLimits");
  const key = keyField && reader.readText(keyField, keyRule);
  // Left out, a match is expected.
  const expectsMatch = block.field("expectMatch") === undefined || block.flag("expectMatch");
  const part = readSource(block, { source, key: key ?? "", expectsMatch });
  const isMatch = source === "headerMatch" || source === "queryMatch";
  if (block.field("expectMatch") !== undefined && !isMatch) {
    const message = '"expectMatch" belongs to headerMatch and queryMatch';
    block.report("expectMatch", { id: "HG207", message, expected: "one of them beside it" });
  }
  if (!isMatch && source !== undefined && block.field("value") !== undefined) {
    return block.refusePair("value", source);
  }
  return key === undefined || others.length > 0 ? undefined : part;
}

/** What a part is read with: the name that it is made from, and its key, which may be wrong. */
interface PartSource {
  readonly source: Exclude<(typeof partSources)[number], "maskedRemoteAddress"> | undefined;
  readonly key: string;
  readonly expectsMatch: boolean;
}

function readSource(block: Block, part: PartSource): DescriptorPart | undefined {
  const { reader } = block;
  const { source, key } = part;
  switch (source) {
    case undefined:
      return readFixed(block, key);
    case "header": {
      const field = block.field(source);
      const header = field && readDescribedHeader(reader, field);
      return header === undefined ? undefined : { kind: "header", header, key };
    }
    case "query": {
      const parameter = block.text(source, keyRule);
      return parameter === undefined ? undefined : { kind: "query", parameter, key };
    }
    case "headerMatch":
    case "queryMatch":
      return readMatch(block, source, part);
    case "metadata":
      return readMetadata(block, key);
    case "cel": {
      const cel = block.text(source, expressionRule);
      return cel === undefined ? undefined : { kind: "expression", key, cel };
    }
  }
}

/** CEL that Envoy reads, over attributes of its own: what is in it, Envoy says. */
const expressionRule: TextRule = {
  charsMax: expressionCharsMax,
  forbidden: /(?![\n\t])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u,
  expected: `an expression in CEL of at most ${expressionCharsMax} characters`,
};

function readFixed(block: Block, key: string): DescriptorPart | undefined {
  const value = block.text("value", valueRule);
  if (value !== undefined) return { kind: "fixed", key, value };
  const isMissing = [...partSources, "value" as const].every((name) => block.isLeftOut(name));
  if (!isMissing) return undefined;
  const message = "a part does not say what it is made from";
  const expected = "header: a header's name, value: a text, or another source";
  return block.reader.report(block.fields.node, { id: "HG125", message, expected });
}

function readMatch(
  block: Block,
  kind: "headerMatch" | "queryMatch",
  { key, expectsMatch: isMatch }: PartSource,
): DescriptorPart | undefined {
  const { reader } = block;
  const valueField = reader.requiredField(block.fields, "value", "the value where it matches");
  const value = valueField && reader.readText(valueField, valueRule);
  const expected = "a list such as [{name: x-plan, exact: free}]";
  const items = block.items(kind, expected, textMatchesMax);
  if (items.length === 0) {
    return block.report(kind, { id: "HG125", message: `"${kind}" matches nothing`, expected });
  }
  const matches = items.map((item) => {
    const place = reader.required(item, "{name: x-plan, exact: free}");
    const match = place && Block.at(reader, place, textMatchShape);
    return match && readTextMatch(match, kind === "headerMatch");
  });
  if (value === undefined || !matches.every((match) => match !== undefined)) return undefined;
  return { kind, key, value, isMatch, matches };
}

/** How a text may be compared. */
const textTests = ["exact", "prefix", "suffix", "contains", "regex", "present"] as const;

/** Reads one test of a header, or of a query parameter. */
export function readTextMatch(block: Block, isHeader: boolean): TextMatch | undefined {
  const { reader, fields } = block;
  const field = reader.requiredField(fields, "name", "the name of what is looked at");
  const name =
    field && (isHeader ? readDescribedHeader(reader, field) : reader.readText(field, keyRule));
  const [test, ...others] = textTests.filter((each) => block.field(each) !== undefined);
  for (const other of others) block.refusePair(other, test ?? other);
  if (test === undefined) {
    const isMissing = textTests.every((each) => block.isLeftOut(each));
    const message = "a match says nothing of what the text has to be";
    const expected = "exact, prefix, suffix, contains or regex: a text, or present: true";
    return isMissing ? reader.report(fields.node, { id: "HG125", message, expected }) : undefined;
  }
  if (test === "present") {
    if (!block.flag(test)) {
      const message = '"present" asks whether it is there';
      return block.report(test, { id: "HG133", message, expected: "present: true" });
    }
    return name === undefined || others.length > 0 ? undefined : { name, test, text: "" };
  }
  const textField = block.field(test);
  const text =
    textField &&
    (test === "regex" ? readRegex(reader, textField) : reader.readText(textField, valueRule));
  if (name === undefined || text === undefined || others.length > 0) return undefined;
  return { name, test, text };
}

/** Where metadata comes from. */
export const metadataSources = ["dynamic", "route"] as const;

function readMetadata(part: Block, key: string): DescriptorPart | undefined {
  const block = part.block("metadata", metadataPartShape);
  if (block === undefined) return undefined;
  const { reader, fields } = block;
  const expected = "a filter's namespace, such as envoy.filters.http.jwt_authn";
  const namespaceField = reader.requiredField(fields, "namespace", expected);
  const namespace = namespaceField && reader.readText(namespaceField, keyRule);
  const pathExpected = "a list of names that leads to a text, such as [payload, sub]";
  const pathField = reader.requiredField(fields, "path", pathExpected);
  const items = block.items("path", pathExpected, metadataPathMax);
  if (pathField !== undefined && items.length === 0) {
    reader.report(pathField.key, {
      id: "HG125",
      message: '"path" leads nowhere',
      expected: pathExpected,
    });
  }
  const path = items.flatMap((item) => reader.readText(item, keyRule) ?? []);
  const from = block.choice("source", { usual: "dynamic", words: metadataSources });
  const fallback = block.text("default", valueRule);
  if (namespace === undefined || path.length === 0) return undefined;
  return { kind: "metadata", key, from, namespace, path, fallback };
}

/** `{v4: 24, v6: 64}`: Envoy gives it the key `masked_remote_address`, and no other. */
function readMask(part: Block): DescriptorPart | undefined {
  const block = part.block("maskedRemoteAddress", maskShape);
  for (const name of ["as", "value", "expectMatch"]) {
    if (part.field(name) !== undefined) part.refusePair(name, "maskedRemoteAddress");
  }
  return (
    block && {
      kind: "maskedAddress",
      key: "masked_remote_address",
      v4PrefixBits: block.whole("v4", wholeMask.v4PrefixBits, v4Bounds),
      v6PrefixBits: block.whole("v6", wholeMask.v6PrefixBits, v6Bounds),
    }
  );
}

/** Bits of a network's prefix. */
export const v4Bounds = { min: 0, max: 32 } as const;

/** As `v4Bounds`, of IPv6. */
export const v6Bounds = { min: 0, max: 128 } as const;
