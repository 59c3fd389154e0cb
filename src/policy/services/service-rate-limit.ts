import { isMap, isScalar, type ParsedNode } from "yaml";
import { quoteText } from "../problems/problem.js";
import { Block } from "../text/block.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { domainRule, type TextRule } from "../text/text-rules.js";
import { readDescriptorPart } from "./descriptor-parts.js";
import type {
  DescriptorHits,
  DescriptorPart,
  ServiceDescriptor,
  ServiceRateLimit,
} from "./service-policy.js";
import { hitsShape, serviceDescriptorShape, serviceRateLimitShape } from "./service-shapes.js";

/** Descriptors of one service: each is a question to the store for every request. */
export const serviceDescriptorsMax = 16;

/** Parts of one descriptor. */
export const descriptorPartsMax = 16;

/** Hits of one descriptor. Source: envoy.config.route.v3.RateLimit.HitsAddend. */
const descriptorHitsMax = 1_000_000_000;

/** The bounds of `hits`. */
export const hitsBounds = { min: 0, max: descriptorHitsMax } as const;

/** When a descriptor may be asked for. */
export const askTimes = ["request", "streamDone"] as const;

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
  const inExtProc = block.flag("inExtProc");
  const items = block.items("descriptors", expected, serviceDescriptorsMax);
  const read = items.flatMap((item) => {
    const descriptor = readDescriptor(reader, item, inExtProc);
    return descriptor === undefined ? [] : [{ descriptor, node: item.value ?? item.key }];
  });
  const isDryRun = block.flag("dryRun");
  if (domain === undefined || domainField === undefined) return undefined;
  const descriptors = read.map(({ descriptor }) => descriptor);
  const claim = {
    reader,
    domain,
    domainNode: domainField.value ?? domainField.key,
    descriptors: read.map(({ descriptor: { parts }, node }) => ({ parts, node })),
  };
  return { rateLimit: { domain, descriptors, inExtProc }, isDryRun, claim };
}

/** One hit, asked for with the request. */
export function askedOnce(parts: readonly DescriptorPart[]): ServiceDescriptor {
  return { parts, hits: { kind: "fixed", count: 1 }, isRefund: false, when: "request" };
}

/** A list of parts, or a map with such a list; undefined where something of it is wrong. */
function readDescriptor(
  reader: NodeReader,
  item: Field,
  inExtProc: boolean,
): ServiceDescriptor | undefined {
  if (!isMap(reader.contentOf(item))) {
    const parts = readParts(reader, item, inExtProc);
    return parts && askedOnce(parts);
  }
  const block = item.value && Block.at(reader, item.value, serviceDescriptorShape);
  if (block === undefined) return undefined;
  const entries = reader.requiredField(block.fields, "entries", "a list of parts");
  const parts = entries && readParts(reader, entries, inExtProc);
  const hits = readHits(block);
  const when = block.choice("when", { usual: "request", words: askTimes });
  const isRefund = block.flag("refund");
  if (inExtProc && when === "streamDone") refuseInExtProc(block, "when", "after the response");
  if (inExtProc && hits.kind === "format") refuseInExtProc(block, "hits", "by Envoy's formats");
  return parts && { parts, hits, isRefund, when };
}

function refuseInExtProc(block: Block, name: string, how: string): undefined {
  return block.report(name, {
    id: "HG243",
    message: `"${name}": ext_proc cannot ask ${how}`,
    expected: "what a request's headers tell, or no inExtProc",
  });
}

/** A list of parts; undefined where one of them is wrong. */
function readParts(
  reader: NodeReader,
  field: Field,
  inExtProc: boolean,
): readonly DescriptorPart[] | undefined {
  const expected = "a descriptor: a list such as [remote_address, {header: x-user, as: user}]";
  const nodes = reader.readList(field, expected);
  if (nodes === undefined) return undefined;
  if (nodes.length === 0 || nodes.length > descriptorPartsMax) {
    const message = `a descriptor of ${nodes.length} parts`;
    const bound = `1 to ${descriptorPartsMax} parts`;
    return reader.report(field.key, { id: "HG160", message, expected: bound });
  }
  const parts = nodes.map((node) => {
    const part = readDescriptorPart(reader, node);
    if (inExtProc && part !== undefined && !isAskable(part)) {
      reader.report(node, {
        id: "HG243",
        message: `only Envoy can make the part ${quoteText(part.key)}`,
        expected: "remote_address, header or value, or no inExtProc",
      });
    }
    return part;
  });
  return parts.every((part) => part !== undefined) ? parts : undefined;
}

function isAskable({ kind }: DescriptorPart): boolean {
  return kind === "remoteAddress" || kind === "header" || kind === "fixed";
}

/** What Envoy finds between two `%`. Source: Envoy, "Access logging", command operators. */
const formatRule: TextRule = {
  charsMax: 256,
  forbidden: /[^ -~]/,
  expected: "one command operator of Envoy, such as %BYTES_RECEIVED%",
};

/** One operator and nothing beside it: Envoy refuses two. */
export const formatPattern = /^%[A-Z_]+(?:\([^%()]*\))?(?::[0-9]+)?%$/;

/** A number, or `{format: "%BYTES_RECEIVED%"}`. */
function readHits(descriptor: Block): DescriptorHits {
  const field = descriptor.field("hits");
  const content = field && descriptor.reader.contentOf(field);
  if (content === undefined || isScalar(content)) {
    return { kind: "fixed", count: descriptor.whole("hits", 1, hitsBounds) };
  }
  const block = descriptor.block("hits", hitsShape);
  const formatField = block?.reader.requiredField(block.fields, "format", formatRule.expected);
  const format = formatField && block?.reader.readText(formatField, formatRule);
  if (formatField === undefined || format === undefined) return { kind: "fixed", count: 1 };
  if (!formatPattern.test(format)) {
    block?.reader.reportContent(formatField.value ?? formatField.key, {
      id: "HG244",
      message: `${quoteText(format)} is not one command operator`,
      expected: formatRule.expected,
      suggestion: formatPattern.test(`%${format}%`) ? `%${format}%` : undefined,
    });
  }
  return { kind: "format", format };
}
