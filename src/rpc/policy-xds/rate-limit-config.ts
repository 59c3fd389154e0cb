import { fromBinary, type JsonValue } from "@bufbuild/protobuf";
import {
  type RateLimitConfig,
  RateLimitConfigSchema,
  type RateLimitDescriptor,
  type RateLimitPolicy,
  RateLimitUnit,
} from "../../gen/api/ratelimit/config/ratelimit/v3/rls_conf_pb.js";
import { rulesMax } from "../../policy/limits/rule-list.js";
import type { PolicyText } from "../../policy/parse.js";
import { fileCharsMax, policyCharsMax } from "../../policy/policy-size.js";
import { visibleText } from "../../policy/problems/problem.js";
import { countParts } from "../codec/count-parts.js";
import { FieldReader, TooManyFieldsError } from "../codec/field-reader.js";

/** The type of the resources that contain limits. */
export const rateLimitConfigTypeUrl =
  "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/** One resource as received: plain data, so that it can be passed to other threads. */
export interface DiscoveredResource {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

/** Resources as texts of a policy, or why they cannot be read. */
export type RateLimitConfigTexts =
  | { readonly kind: "texts"; readonly sources: readonly PolicyText[] }
  | { readonly kind: "unreadable"; readonly message: string };

/** Maximum number of resources of one set. */
export const resourcesMax = 10_000;

/**
 * Maximum number of messages in a set of resources. A policy has at most `rulesMax` descriptors,
 * each with its own limit, and a set with more is refused before anything is created from it.
 */
export const partsMax = 2 * rulesMax + resourcesMax;

/** Number of fields of a descriptor in which all are set, and of its limit. */
const fieldsPerPart = 8;

/** Maximum displayed length of the name of a resource, in characters. */
const nameCharsMax = 200;

/**
 * Converts a set of `RateLimitConfig` resources to texts of envoyproxy/ratelimit's YAML, in the
 * order of their names. So the rules and the located problems of policy files apply to them too.
 * Fields with default values are left out, except where 0 and UNKNOWN mean something.
 *
 * Source: api/ratelimit/config/ratelimit/v3/rls_conf.proto of envoyproxy/ratelimit.
 */
export function readRateLimitConfigs(
  resources: readonly DiscoveredResource[],
): RateLimitConfigTexts {
  if (resources.length > resourcesMax) {
    return unreadable(`there are more than ${resourcesMax} resources`);
  }
  const configs: RateLimitConfig[] = [];
  let partCount = 0;
  for (const [i, { typeUrl, value }] of resources.entries()) {
    if (typeUrl !== rateLimitConfigTypeUrl) {
      // Leaving it out would silently drop a domain's limits.
      const message = `resource ${i + 1} is a ${shownName(typeUrl)}, not a RateLimitConfig`;
      return unreadable(message);
    }
    const made = tryDecode(value, partsMax - partCount);
    if (made === undefined) return unreadable(`resource ${i + 1} cannot be decoded`);
    if (made === "too many") {
      return unreadable(`the resources hold more than ${partsMax} descriptors and limits`);
    }
    partCount += made.partCount;
    configs.push(made.config);
  }
  return { kind: "texts", sources: writeTexts(configs) };
}

function unreadable(message: string): RateLimitConfigTexts {
  return { kind: "unreadable", message };
}

type Decoded = { readonly config: RateLimitConfig; readonly partCount: number };

function tryDecode(value: Uint8Array, partsLeft: number): Decoded | "too many" | undefined {
  try {
    const reader = new FieldReader(value, fieldsPerPart * partsMax);
    const partCount = countParts(reader, RateLimitConfigSchema);
    if (partCount > partsLeft) return "too many";
    return {
      config: fromBinary(RateLimitConfigSchema, value, { readUnknownFields: false }),
      partCount,
    };
  } catch (thrown) {
    if (thrown instanceof TooManyFieldsError) return "too many";
    // Cut off, nested too deeply, or text that is not UTF-8.
    return undefined;
  }
}

function writeTexts(configs: readonly RateLimitConfig[]): readonly PolicyText[] {
  const seenCounts = new Map<string, number>();
  let charCount = 0;
  return configs.toSorted(byNameAndDomain).map((config) => {
    const name = shownName(config.name || config.domain) || "unnamed";
    const seenCount = (seenCounts.get(name) ?? 0) + 1;
    seenCounts.set(name, seenCount);
    const text = writeConfig(config, Math.min(fileCharsMax, policyCharsMax - charCount));
    charCount += text.length;
    return { file: seenCount === 1 ? name : `${name}#${seenCount}`, text };
  });
}

function byNameAndDomain(a: RateLimitConfig, b: RateLimitConfig): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return a.domain === b.domain ? 0 : a.domain < b.domain ? -1 : 1;
}

function shownName(name: string): string {
  return visibleText(name.slice(0, nameCharsMax));
}

/** A text under construction. The parser refuses one that is too long, so writing stops then. */
interface Writing {
  readonly lines: string[];
  /** Characters that may still be written; below zero the text is too long. */
  leftCount: number;
}

function writeConfig(config: RateLimitConfig, charsMax: number): string {
  const writing: Writing = { lines: [], leftCount: charsMax };
  write(writing, `domain: ${quote(config.domain)}`);
  if (config.descriptors.length > 0) {
    write(writing, "descriptors:");
    writeDescriptors(config.descriptors, "", writing);
  }
  return `${writing.lines.join("\n")}\n`;
}

function write(writing: Writing, line: string): void {
  writing.leftCount -= line.length + 1;
  writing.lines.push(line);
}

/** Decoding bounds the depth: a message that is nested more than a hundred times is refused. */
function writeDescriptors(
  descriptors: readonly RateLimitDescriptor[],
  indent: string,
  writing: Writing,
): void {
  for (const descriptor of descriptors) {
    if (writing.leftCount < 0) return;
    const { key, value, rateLimit, metadata } = descriptor;
    const inner = `${indent}  `;
    write(writing, `${indent}- key: ${quote(key)}`);
    // The message does not distinguish an empty value from none. In YAML, both are a key alone.
    if (value !== "") write(writing, `${inner}value: ${quote(value)}`);
    if (rateLimit !== undefined) write(writing, `${inner}rate_limit: ${limitText(rateLimit)}`);
    for (const name of switchNames(descriptor)) write(writing, `${inner}${name}: true`);
    if (metadata !== undefined && Object.keys(metadata).length > 0) {
      write(writing, `${inner}metadata: ${jsonText(metadata)}`);
    }
    if (descriptor.descriptors.length > 0) {
      write(writing, `${inner}descriptors:`);
      writeDescriptors(descriptor.descriptors, inner, writing);
    }
  }
}

function switchNames(descriptor: RateLimitDescriptor): readonly string[] {
  const { shadowMode, quotaMode, detailedMetric } = descriptor;
  return [
    ...(shadowMode ? ["shadow_mode"] : []),
    ...(quotaMode ? ["quota_mode"] : []),
    ...(detailedMetric ? ["detailed_metric"] : []),
  ];
}

function limitText(policy: RateLimitPolicy): string {
  const { unit, requestsPerUnit, unlimited, name, replaces } = policy;
  const parts: string[] = [];
  if (name !== "") parts.push(`name: ${quote(name)}`);
  // envoyproxy/ratelimit refuses a unit next to `unlimited`, and ignores a number.
  if (unlimited) parts.push("unlimited: true");
  if (!unlimited || unit !== RateLimitUnit.UNKNOWN) {
    // An unknown number stays a number, for the problem's text.
    parts.push(`unit: ${quote(RateLimitUnit[unit] ?? String(unit))}`);
  }
  if (!unlimited) parts.push(`requests_per_unit: ${requestsPerUnit}`);
  if (replaces.length > 0) {
    const names = replaces.map((replaced) => `{name: ${quote(replaced.name)}}`);
    parts.push(`replaces: [${names.join(", ")}]`);
  }
  return `{${parts.join(", ")}}`;
}

/** Numbers are doubles in the message, so large whole ones are written as such: 1e+21. */
function jsonText(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  if (typeof value === "number") return numberText(value);
  if (typeof value !== "object" || value === null) return quote(value);
  const parts = Object.entries(value).map(([name, one]) => `${quote(name)}:${jsonText(one)}`);
  return `{${parts.join(",")}}`;
}

function numberText(value: number): string {
  // JSON cannot represent these.
  if (!Number.isFinite(value)) return quote(String(value));
  const isLarge = Number.isInteger(value) && !Number.isSafeInteger(value);
  return isLarge ? value.toExponential() : JSON.stringify(value);
}

function quote(value: string | boolean | null): string {
  return escapeRest(JSON.stringify(value));
}

/** JSON is YAML, except for characters that JSON does not escape and YAML does not allow. */
function escapeRest(json: string): string {
  return json.replaceAll(/[\u007f-\u009f\ufeff\ufffe\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
