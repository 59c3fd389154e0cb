import { isMap, isScalar, type ParsedNode } from "yaml";
import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import {
  any,
  type FieldType,
  flag,
  list,
  readBy,
  ruledText,
  text,
  whole,
  words,
} from "../text/form.js";
import {
  field,
  inner,
  innerBlock,
  items,
  object,
  type PlacedValue,
  placed,
} from "../text/object.js";
import { domainRule, type TextRule } from "../text/text-rules.js";
import { type DescriptorPart, descriptorPart } from "./descriptor-parts.js";

/** Maximum number of descriptors of one service: each is a query to the store for every request. */
export const serviceDescriptorsMax = 16;

/** Maximum number of parts of one descriptor. */
export const descriptorPartsMax = 16;

/** Bounds of the hits of one descriptor. Source: envoy.config.route.v3.RateLimit.HitsAddend. */
const hitsBounds = { min: 0, max: 1_000_000_000 } as const;

/** A reference to a domain and to descriptors of it, with its places. */
export interface RateLimitClaim {
  readonly reader: Block["reader"];
  readonly domain: string;
  readonly domainNode: ParsedNode;
  readonly inExtProc: boolean;
  readonly descriptors: readonly {
    readonly parts: readonly DescriptorPart[];
    /** Absent: one hit. */
    readonly hits?: DescriptorHits;
    readonly isRefund?: boolean;
    readonly node: ParsedNode;
  }[];
}

/** Cost of a descriptor, in hits. */
export type DescriptorHits =
  /** A whole number from 0. */
  | { readonly kind: "fixed"; readonly count: number }
  /** A number that Envoy finds. Source: Envoy, "Access logging", command operators. */
  | { readonly kind: "format"; readonly format: string };

/** Returns a descriptor of one hit, charged with the request. */
export function askedOnce(parts: readonly DescriptorPart[]): ServiceDescriptor {
  return { parts, hits: { kind: "fixed", count: 1 }, isRefund: false, when: "request" };
}

/** A part of a descriptor and its place; undefined if it is wrong. */
type ReadPart = PlacedValue<DescriptorPart> | undefined;

const partsExpected = "a descriptor: a list such as [remote_address, {header: x-user, as: user}]";

const partsForm = list(descriptorPart, descriptorPartsMax, 1);

/** A list of parts. */
const parts: FieldType<readonly ReadPart[]> = readBy(partsForm, (reader, place) => {
  const nodes = reader.readList(place, partsExpected);
  if (nodes === undefined) return undefined;
  if (nodes.length === 0 || nodes.length > descriptorPartsMax) {
    const message = `a descriptor of ${nodes.length} parts`;
    const bound = `1 to ${descriptorPartsMax} parts`;
    return reader.report(place.key, { id: "HG160", message, expected: bound });
  }
  return nodes.map((node) => {
    const value = descriptorPart.read(reader, { name: "descriptors", key: node, value: node });
    return value && { value, node };
  });
});

/** A text between two `%` of Envoy. Source: Envoy, "Access logging", command operators. */
const formatRule: TextRule = {
  charsMax: 256,
  forbidden: /[^ -~]/,
  expected: "one command operator of Envoy, such as %BYTES_RECEIVED%",
};

/** One operator and nothing beside it: Envoy refuses two. */
const formatPattern = /^%[A-Z_]+(?:\([^%()]*\))?(?::[0-9]+)?%$/;

const format = readBy(text(formatRule, formatPattern), (reader, place) => {
  const written = reader.readText(place, formatRule);
  if (written === undefined || formatPattern.test(written)) return written;
  return reader.reportContent(place.value ?? place.key, {
    id: "HG244",
    message: `${quoteText(written)} is not a single command operator`,
    expected: formatRule.expected,
    suggestion: formatPattern.test(`%${written}%`) ? `%${written}%` : undefined,
  });
});

const foundHits = object(
  { title: "hits", docs: "Hits from a value that Envoy reports." },
  {
    format: field(format, "A command operator: %BYTES_RECEIVED%.", { needs: formatRule.expected }),
  },
  {
    data: ({ format: found }): DescriptorHits =>
      found === undefined ? { kind: "fixed", count: 1 } : { kind: "format", format: found },
  },
);

const fixedHits = whole(hitsBounds);
const formattedHits = inner(foundHits);

/** A number, or `{format: "%BYTES_RECEIVED%"}`. */
const hits = readBy<DescriptorHits>(any(fixedHits, formattedHits), (reader, place) => {
  const content = reader.contentOf(place);
  if (content !== undefined && !isScalar(content)) return formattedHits.read(reader, place);
  const count = fixedHits.read(reader, place);
  return count === undefined ? undefined : { kind: "fixed", count };
});

const descriptor = object(
  { title: "a service's descriptor", docs: "A descriptor, and its cost." },
  {
    entries: field(parts, "Its parts, in order.", { needs: "a list of parts" }),
    hits: field(hits, "How many hits it costs.", {
      larger: "stricter",
      default: { kind: "fixed", count: 1 },
      writtenDefault: 1,
    }),
    refund: field(flag, "Refunds the hits instead of charging them.", {
      as: "isRefund",
      default: false,
    }),
    when: field(
      words("request", "streamDone"),
      "When it is charged: with the request, or when the response has ended.",
      { default: "request" },
    ),
  },
);

/** One descriptor and its cost. */
export type ServiceDescriptor = Omit<typeof descriptor.defaults, "entries"> & {
  readonly parts: readonly DescriptorPart[];
};

/** A descriptor as written. `block` is set if it is a map. */
interface ReadDescriptor extends Omit<ServiceDescriptor, "parts"> {
  readonly entries: readonly ReadPart[] | undefined;
  readonly block?: Block;
}

const descriptorMap = innerBlock(descriptor);

/** A list of parts, or a map with such a list. */
const descriptorItem = readBy<ReadDescriptor>(any(parts, descriptorMap), (reader, place) => {
  if (!isMap(reader.contentOf(place))) {
    return { ...askedOnce([]), entries: parts.read(reader, place) };
  }
  const read = descriptorMap.read(reader, place);
  return read && { ...read.data, block: read.block };
});

const expected = "a list of descriptors, such as [[remote_address]]";

/** `rateLimit` of a service; undefined if its domain is wrong. */
export const serviceRateLimit = object(
  {
    title: "a service's rateLimit",
    docs: "The limits of `rateLimits` that requests of this service are charged to.",
  },
  {
    domain: field(placed(ruledText(domainRule)), "A domain of `rateLimits`.", {
      needs: "a domain of rateLimits",
    }),
    descriptors: field(
      items(placed(descriptorItem), { expected, max: serviceDescriptorsMax }),
      "Descriptors for each request. A descriptor with a missing part is not sent.",
      { needs: expected },
    ),
    inExtProc: field(
      flag,
      "Sends the descriptors with ext_proc, so that Envoy needs no separate rate limit call.",
      {
        default: false,
      },
    ),
    dryRun: field(flag, "Counts and reports, but never denies.", { default: false }),
  },
  {
    data({ domain, descriptors = [], inExtProc, dryRun: isDryRun }) {
      if (domain === undefined) return undefined;
      const whole = descriptors.flatMap(({ value: { entries, block: _, ...rest }, node }) => {
        const known = entries?.flatMap((part) => part?.value ?? []) ?? [];
        const isWhole = entries !== undefined && known.length === entries.length;
        return isWhole ? [{ descriptor: { ...rest, parts: known }, node }] : [];
      });
      const asked: readonly ServiceDescriptor[] = whole.map(({ descriptor: one }) => one);
      return {
        rateLimit: { domain: domain.value, descriptors: asked, inExtProc },
        isDryRun,
        domainNode: domain.node,
        descriptors: whole.map(({ descriptor: one, node }) => ({ ...one, node })),
      };
    },
    check(block, _, { descriptors = [], inExtProc }) {
      for (const { value } of inExtProc ? descriptors : []) refuseInExtProc(block, value);
    },
  },
);

/** The descriptors that a service's requests are charged by. */
export type ServiceRateLimit = NonNullable<typeof serviceRateLimit.defaults>["rateLimit"];

/** Refuses parts and settings that only Envoy can handle. */
function refuseInExtProc({ reader }: Block, { entries, block, hits: cost, when }: ReadDescriptor) {
  for (const part of entries ?? []) {
    if (part === undefined || isAskable(part.value)) continue;
    reader.report(part.node, {
      id: "HG243",
      message: `only Envoy can build the part ${quoteText(part.value.key)}`,
      expected: "remote_address, header or value, or no inExtProc",
    });
  }
  const refuse = (name: string, how: string): undefined =>
    block?.report(name, {
      id: "HG243",
      message: `"${name}": ext_proc cannot send it ${how}`,
      expected: "values from request headers, or no inExtProc",
    });
  if (when === "streamDone") refuse("when", "after the response");
  if (cost.kind === "format") refuse("hits", "by Envoy's formats");
}

function isAskable({ kind }: DescriptorPart): boolean {
  return kind === "remoteAddress" || kind === "header" || kind === "fixed";
}
