import { isScalar, type ParsedNode } from "yaml";
import type { FailureMode, Limit, PathStep, RuleEffect } from "../core/limit.js";
import type { Field, Fields, NodeReader } from "./node-reader.js";
import { quoteText } from "./problem.js";
import { type RateLimit, readRateLimit } from "./rate-limit.js";
import { type RuleList, rulesMax, stepLabel } from "./rule-list.js";
import { type Dialect, descriptorShapes } from "./shapes.js";
import { keyRule, valueRule } from "./text-rules.js";

/** Limits on one descriptor: each is a charge of every request that meets it. */
export const limitsPerDescriptorMax = 16;

/** Levels of descriptors. */
export const pathStepsMax = 32;

/** Characters of all keys and values on the way to a descriptor, with their separators. */
export const pathCharsMax = 2_048;

/** Patterns among the siblings of one key: a request's value is held against each of them. */
export const patternsPerKeyMax = 1_000;

/** Where a list of descriptors stands. */
export interface Level {
  readonly reader: NodeReader;
  readonly dialect: Dialect;
  readonly rules: RuleList;
  readonly domain: string;
  /** What the domain says for limits that say nothing. */
  readonly onStoreFailure: FailureMode;
  /** The descriptors above. */
  readonly path: readonly PathStep[];
  /** Of the descriptors above; empty at the top. */
  readonly label: string;
}

/** Reads a list of descriptors and what is below them into `level.rules`, parents first. */
export function readDescriptors(field: Field, level: Level): void {
  // `descriptors:` with nothing after it is an empty list, as in envoyproxy/ratelimit.
  if (field.value === undefined) return;
  const items = level.reader.readList(field, "a list of descriptors");
  const siblings = new Siblings(level.reader);
  for (const item of items ?? []) {
    if (level.rules.isOverfull) return;
    readDescriptor(item, level, siblings);
  }
}

function readDescriptor(node: ParsedNode, level: Level, siblings: Siblings): undefined {
  const { reader, dialect, rules, domain } = level;
  const fields = reader.readMap(node, descriptorShapes[dialect]);
  if (fields === undefined) return undefined;
  const step = readStep(reader, fields);
  const effect = readEffect(fields, level);
  const stepText = step === undefined ? "" : stepLabel(step);
  const label = level.label === "" ? stepText : `${level.label}.${stepText}`;
  const path = step === undefined ? level.path : [...level.path, step];
  if (step !== undefined) {
    siblings.add(step, node);
    if (!isPathInBounds(reader, node, { path, label })) return undefined;
    // Problems end in no policy, so what a wrong descriptor leaves in the list is never seen.
    if (!rules.add({ domain, path, effect: effect ?? { kind: "none" }, label })) {
      const message = `a policy cannot hold more than ${rulesMax} descriptors`;
      return reader.report(node, { id: "HG160", message });
    }
  }
  const children = fields.byName.get("descriptors");
  if (children !== undefined) readDescriptors(children, { ...level, path, label });
  return undefined;
}

function readStep(reader: NodeReader, fields: Fields): PathStep | undefined {
  const keyField = reader.requiredField(fields, "key", "the key of a descriptor entry");
  const key = keyField && reader.readText(keyField, keyRule);
  const valueField = findValue(reader, fields);
  const value = valueField && reader.readText(valueField, valueRule);
  if (keyField === undefined || key === undefined) return undefined;
  // With its value unknown, the descriptor must not be taken for the key alone.
  const isValueUnknown = valueField !== undefined && value === undefined;
  if (isValueUnknown || fields.misspelt.has("value")) return undefined;
  if (key.includes("*")) {
    return reader.reportContent(keyField.value ?? keyField.key, {
      id: "HG121",
      message: "a pattern in a key is not supported yet",
      expected: "`*` in values only",
    });
  }
  return value === undefined ? { key } : { key, value };
}

/** The field `value`; an empty one is none, as in envoyproxy/ratelimit: the key alone. */
function findValue(reader: NodeReader, fields: Fields): Field | undefined {
  const field = fields.byName.get("value");
  if (field?.value === undefined) return undefined;
  const node = reader.contentOf(field);
  return isScalar(node) && node.value === "" ? undefined : field;
}

function readEffect(fields: Fields, level: Level): RuleEffect | undefined {
  const { reader, dialect } = level;
  const shadowField = fields.byName.get("shadow_mode");
  const isShadow = shadowField !== undefined && reader.readFlag(shadowField) === true;
  const failureField = fields.byName.get("on_store_failure");
  const failure = failureField && readFailureMode(reader, failureField);
  const setting = { dialect, isShadow, onStoreFailure: failure ?? level.onStoreFailure };
  const readOne = (node: ParsedNode): RateLimit | undefined => readRateLimit(reader, node, setting);
  const oneField = fields.byName.get("rate_limit");
  const severalField = fields.byName.get("rate_limits");
  const one = oneField && readSingle(reader, oneField, readOne);
  const several = severalField && readSeveral(reader, severalField, readOne);
  if (severalField !== undefined && oneField !== undefined) {
    const message = '"rate_limits" and "rate_limit" exclude each other';
    reader.report(severalField.key, { id: "HG126", message, expected: "one of the two" });
  }
  if (failureField !== undefined) refuseIdleSetting(reader, failureField, { fields, one });
  return oneField === undefined && severalField === undefined ? { kind: "none" } : (several ?? one);
}

/** `on_store_failure` needs a limit beside it: nothing is inherited. */
function refuseIdleSetting(
  reader: NodeReader,
  field: Field,
  { fields, one }: { readonly fields: Fields; readonly one: RuleEffect | undefined },
): void {
  if (one?.kind === "unlimited") {
    const message = `"${field.name}" and "unlimited" exclude each other`;
    reader.report(field.key, { id: "HG126", message, expected: "one of the two" });
  }
  const limitNames = ["rate_limit", "rate_limits"];
  if (limitNames.some((name) => fields.byName.has(name) || fields.misspelt.has(name))) return;
  reader.report(field.key, { id: "HG127", message: `"${field.name}" stands where no limit is` });
}

function readSingle(
  reader: NodeReader,
  field: Field,
  readOne: (node: ParsedNode) => RateLimit | undefined,
): RuleEffect | undefined {
  const node = reader.required(field, "a rate_limit: a map of names");
  const read = node && readOne(node);
  if (read === undefined) return undefined;
  if (read.kind === "limit") return { kind: "limited", limits: [read.limit] };
  return read.name === undefined ? { kind: "unlimited" } : { kind: "unlimited", name: read.name };
}

const failureModes: readonly FailureMode[] = ["local", "allow", "deny", "error"];

/** `on_store_failure`: what answers for a limit while the store cannot. */
export function readFailureMode(reader: NodeReader, field: Field): FailureMode | undefined {
  return reader.readChoice(field, failureModes, {
    id: "HG133",
    what: "an answer for when the store is away",
  });
}

function readSeveral(
  reader: NodeReader,
  field: Field,
  readOne: (node: ParsedNode) => RateLimit | undefined,
): RuleEffect | undefined {
  const items = reader.readList(field, "a list of limits");
  if (items === undefined) return undefined;
  if (items.length === 0) {
    const message = '"rate_limits" holds no limit';
    return reader.report(field.key, { id: "HG124", message, expected: "a list of limits" });
  }
  if (items.length > limitsPerDescriptorMax) {
    const message = `a descriptor cannot have more than ${limitsPerDescriptorMax} limits`;
    return reader.report(field.key, { id: "HG160", message });
  }
  const limits: Limit[] = [];
  const identities = new Set<string>();
  for (const item of items) {
    const read = readOne(item);
    if (read === undefined) continue;
    if (read.kind === "unlimited") {
      const message = '"unlimited" cannot stand among several limits';
      reader.report(read.node, { id: "HG126", message, expected: "a rate_limit of its own" });
      continue;
    }
    refuseSameIdentity(reader, read, identities);
    limits.push(read.limit);
  }
  return { kind: "limited", limits };
}

/** State is kept by name, or by period where there is none: see `limitKey` in core/key.ts. */
function refuseSameIdentity(
  reader: NodeReader,
  { limit, node }: Extract<RateLimit, { kind: "limit" }>,
  identities: Set<string>,
): void {
  const identity = limit.name === undefined ? `p${limit.periodUs}` : `n${limit.name}`;
  if (identities.has(identity)) {
    const what =
      limit.name === undefined ? "period, and no name" : `name, ${quoteText(limit.name)}`;
    const message = `another limit of this descriptor has the same ${what}`;
    reader.report(node, { id: "HG152", message, expected: "a `name` of its own" });
  }
  identities.add(identity);
}

function isPathInBounds(
  reader: NodeReader,
  node: ParsedNode,
  { path, label }: { readonly path: readonly PathStep[]; readonly label: string },
): boolean {
  if (path.length <= pathStepsMax && label.length <= pathCharsMax) return true;
  const size = `${path.length} levels, ${label.length} characters`;
  const message = `the path to this descriptor has ${size}`;
  const expected = `at most ${pathStepsMax} levels and ${pathCharsMax} characters`;
  reader.report(node, { id: "HG161", message, expected });
  return false;
}

/** What stands in one list of descriptors: refuses the same twice. */
class Siblings {
  readonly #reader: NodeReader;
  readonly #lines = new Map<string, number>();
  readonly #patternCounts = new Map<string, number>();

  constructor(reader: NodeReader) {
    this.#reader = reader;
  }

  add(step: PathStep, node: ParsedNode): void {
    const identity = `${step.key.length}:${step.key}${step.value ?? ""}`;
    const line = this.#lines.get(identity);
    if (line !== undefined) {
      const what = quoteText(stepLabel(step));
      this.#reader.report(node, { id: "HG151", message: `${what} stands already on line ${line}` });
      return;
    }
    this.#lines.set(identity, this.#reader.source.position(node.range[0]).line);
    if (step.value?.includes("*") === true) this.#countPattern(step.key, node);
  }

  #countPattern(key: string, node: ParsedNode): void {
    const count = (this.#patternCounts.get(key) ?? 0) + 1;
    this.#patternCounts.set(key, count);
    if (count !== patternsPerKeyMax + 1) return;
    const message = `one key cannot have more than ${patternsPerKeyMax} patterns beside each other`;
    this.#reader.report(node, { id: "HG160", message });
  }
}
