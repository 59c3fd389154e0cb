import { isMap, type ParsedNode } from "yaml";
import { Block } from "./block.js";
import type { Field, NodeReader } from "./node-reader.js";
import type { DescriptorPart, ServiceRateLimit } from "./service-policy.js";
import { descriptorPartShape, serviceRateLimitShape } from "./service-shapes.js";
import { readHeaderName } from "./service-texts.js";
import { domainRule, keyRule, valueRule } from "./text-rules.js";

/** Descriptors of one service: each is a question to the store for every request. */
export const serviceDescriptorsMax = 16;

/** Parts of one descriptor. */
export const descriptorPartsMax = 16;

/** What `rateLimit` says; its domain and descriptors are held against the limits at the end. */
export interface ReadRateLimit {
  readonly rateLimit: ServiceRateLimit;
  readonly isDryRun: boolean;
  readonly claim: RateLimitClaim;
}

/** That a domain and descriptors of it are there, and where it is said. */
export interface RateLimitClaim {
  readonly reader: NodeReader;
  readonly domain: string;
  readonly domainNode: ParsedNode;
  readonly descriptors: readonly {
    readonly parts: readonly DescriptorPart[];
    readonly node: ParsedNode;
  }[];
}

/** Reads `rateLimit` of a service; undefined where it is left out, or wrong. */
export function readServiceRateLimit(service: Block): ReadRateLimit | undefined {
  const block = service.block("rateLimit", serviceRateLimitShape);
  if (block === undefined) return undefined;
  const { reader, fields } = block;
  const domainField = reader.requiredField(fields, "domain", "a domain of rateLimits");
  const domain = domainField && reader.readText(domainField, domainRule);
  const expected = "a list of descriptors, such as [[remote_address]]";
  reader.requiredField(fields, "descriptors", expected);
  const items = block.items("descriptors", expected, serviceDescriptorsMax);
  const descriptors = items.flatMap((item) => {
    const parts = readDescriptor(reader, item);
    return parts === undefined ? [] : [{ parts, node: item.value ?? item.key }];
  });
  const inExtProc = block.flag("inExtProc");
  const isDryRun = block.flag("dryRun");
  if (domain === undefined || domainField === undefined) return undefined;
  const rateLimit = { domain, descriptors: descriptors.map(({ parts }) => parts), inExtProc };
  const domainNode = domainField.value ?? domainField.key;
  return { rateLimit, isDryRun, claim: { reader, domain, domainNode, descriptors } };
}

/** A list of parts; undefined where one of them is wrong. */
function readDescriptor(reader: NodeReader, item: Field): readonly DescriptorPart[] | undefined {
  const expected = "a descriptor: a list such as [remote_address, {header: x-user, as: user}]";
  const nodes = reader.readList(item, expected);
  if (nodes === undefined) return undefined;
  if (nodes.length === 0 || nodes.length > descriptorPartsMax) {
    const message = `a descriptor of ${nodes.length} parts`;
    const bound = `1 to ${descriptorPartsMax} parts`;
    return reader.report(item.key, { id: "HG160", message, expected: bound });
  }
  const parts = nodes.map((node) => readPart(reader, node));
  return parts.every((part) => part !== undefined) ? parts : undefined;
}

function readPart(reader: NodeReader, node: ParsedNode): DescriptorPart | undefined {
  if (!isMap(reader.contentAt(node))) {
    const field = { name: "descriptors", key: node, value: node };
    const what = "a part of a descriptor that stands alone";
    const word = reader.readChoice(field, ["remote_address"], { id: "HG133", what });
    return word && { kind: "remoteAddress", key: word };
  }
  const block = Block.at(reader, node, descriptorPartShape);
  if (block === undefined) return undefined;
  const keyField = reader.requiredField(block.fields, "as", "the key that it has in rateLimits");
  const key = keyField && reader.readText(keyField, keyRule);
  const headerField = block.field("header");
  const valueField = block.field("value");
  if (headerField !== undefined && valueField !== undefined) {
    return block.refusePair("value", "header");
  }
  if (valueField !== undefined) {
    const value = reader.readText(valueField, valueRule);
    return key === undefined || value === undefined ? undefined : { kind: "fixed", key, value };
  }
  const expected = "header: a header's name, or value: a text";
  const wanted = reader.requiredField(block.fields, "header", expected);
  const header = wanted && readHeaderName(reader, wanted);
  return key === undefined || header === undefined ? undefined : { kind: "header", header, key };
}
