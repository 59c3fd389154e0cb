import { type Priority, priorities } from "../../core/settings/admission-settings.js";
import { type ConditionCompiler, conditionCharsMax } from "../cel/cel.js";
import { Block } from "../text/block.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { readHeaderName, readNetwork, readPath } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import type { PriorityPolicy, PriorityRule, TrustPolicy } from "./service-policy.js";
import {
  priorityFromShape,
  priorityRuleShape,
  priorityShape,
  trustShape,
} from "./service-shapes.js";

/** Rules of one service: each may run for every request. */
export const priorityRulesMax = 64;

/** Paths of one kind, networks, and principals of one service. */
export const priorityItemsMax = 64;

/** Where a policy says nothing of priority. */
const defaultPriority: PriorityPolicy = {
  header: "x-request-priority",
  usual: "normal",
  rules: [],
  bypassPaths: [
    "/healthz",
    "/livez",
    "/readyz",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
  ],
  authPaths: ["/login/*", "/auth/*", "/oauth/*", "/oauth2/*"],
  trust: { anyone: false, sources: [], principals: [] },
};

/**
 * Whether a policy leaves the paths that are neither counted nor refused as they are. Nobody is
 * warned where a gateway counts those: probes reach pods without it, and whoever else asks for
 * them from outside had better be counted.
 */
export function isUsualBypass({ bypassPaths }: PriorityPolicy): boolean {
  return bypassPaths === defaultPriority.bypassPaths;
}

/** Reads `priority` of a service; what is left out is as usual. */
export function readPriority(service: Block, compiler: ConditionCompiler): PriorityPolicy {
  const block = service.block("priority", priorityShape);
  if (block === undefined) return defaultPriority;
  const from = block.block("from", priorityFromShape);
  const headerField = from?.field("header");
  const header = headerField && readHeaderName(block.reader, headerField);
  return {
    header: header ?? defaultPriority.header,
    usual:
      from?.choice("default", { usual: defaultPriority.usual, words: priorities }) ??
      defaultPriority.usual,
    rules: readRules(block, compiler),
    bypassPaths: readPaths(block, "bypassPaths", defaultPriority.bypassPaths),
    authPaths: readPaths(block, "authPaths", defaultPriority.authPaths),
    trust: from === undefined ? defaultPriority.trust : readTrust(from),
  };
}

const principalRule: TextRule = {
  charsMax: 1_024,
  // A star stands for any rest, and for nothing in the middle.
  forbidden: /[^!-~]|\*(?!$)/,
  expected: "a URI in the caller's certificate, such as spiffe://shop/web or spiffe://shop/*",
};

/** A list that is written is the whole list: `[]` has none of the usual ones either. */
function readPaths(block: Block, name: string, usual: readonly string[]): readonly string[] {
  if (block.field(name) === undefined) return usual;
  const items = block.items(name, "a list of paths", priorityItemsMax);
  return items.flatMap((item) => readPath(block.reader, item) ?? []);
}

function readTrust(from: Block): TrustPolicy {
  const block = from.block("trust", trustShape);
  if (block === undefined) return defaultPriority.trust;
  const { reader } = block;
  const sources = block.items("sources", "a list of networks", priorityItemsMax);
  const principals = block.items("principals", "a list of principals", priorityItemsMax);
  const trust = {
    anyone: block.flag("anyone"),
    sources: sources.flatMap((item) => readNetwork(reader, item) ?? []),
    principals: principals.flatMap((item) => reader.readText(item, principalRule) ?? []),
  };
  if (trust.anyone && block.field("sources") !== undefined) block.refusePair("sources", "anyone");
  if (trust.anyone && block.field("principals") !== undefined) {
    block.refusePair("principals", "anyone");
  }
  return trust;
}

function readRules(block: Block, compiler: ConditionCompiler): readonly PriorityRule[] {
  const items = block.items("rules", "a list of rules: {when: ..., is: ...}", priorityRulesMax);
  return items.flatMap((item) => readRule(block.reader, item, compiler) ?? []);
}

/** A condition may be written over several lines; how long it is, its reader says. */
const conditionRule: TextRule = {
  charsMax: 16 * conditionCharsMax,
  forbidden: /(?![\n\t])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u,
  expected: `a condition in CEL of at most ${conditionCharsMax} characters`,
};

function readRule(
  reader: NodeReader,
  item: Field,
  compiler: ConditionCompiler,
): PriorityRule | undefined {
  const place = reader.required(item, "a rule: {when: ..., is: ...}");
  const block = place && Block.at(reader, place, priorityRuleShape);
  if (block === undefined) return undefined;
  const whenField = reader.requiredField(block.fields, "when", "a condition in CEL");
  const when = whenField && reader.readText(whenField, conditionRule);
  const isField = reader.requiredField(block.fields, "is", "the class it gives");
  const is = isField && readClass(reader, isField);
  if (whenField !== undefined && when !== undefined) {
    const compiled = compiler.compile(when);
    if (compiled.kind === "wrong") {
      const { start, end, ...finding } = compiled.mistake;
      return reader.reportPart(whenField.value ?? whenField.key, { start, end }, finding);
    }
  }
  return when === undefined || is === undefined ? undefined : { when, is };
}

function readClass(reader: NodeReader, field: Field): Priority | undefined {
  return reader.readChoice(field, priorities, { id: "HG133", what: "a class" });
}
