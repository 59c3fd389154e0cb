import { isScalar, type ParsedNode } from "yaml";
import type {
  LimitDefaults,
  MetricStep,
  PathStep,
  Rule,
  RuleDisclosure,
} from "../../core/limits/limit.js";
import { quoteText } from "../problems/problem.js";
import { Block } from "../text/block.js";
import {
  any,
  asWritten,
  type Form,
  list,
  type MapForm,
  map,
  readBy,
  ruledText,
  words,
} from "../text/form.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { field, object, readField } from "../text/object.js";
import type { Dialect } from "../text/shapes.js";
import { keyRule, valueRule } from "../text/text-rules.js";
import type { LimitNames } from "./limit-names.js";
import { rateLimitForms } from "./rate-limit.js";
import { limitsPerDescriptorMax, type ReadEffect, readEffect } from "./rule-effect.js";
import { type RuleDraft, type RuleList, rulesMax, stepLabel } from "./rule-list.js";
import {
  detailedMetric,
  metricStep,
  type RuleSettings,
  readDisclosure,
  readSettings,
  refuseSharing,
  settings,
  sharePattern,
} from "./rule-settings.js";
import { Siblings } from "./siblings.js";

/** Maximum number of descriptor levels. */
export const pathStepsMax = 32;

/** Maximum length of all keys and values on the path to a descriptor, with separators. */
export const pathCharsMax = 2_048;

const value = ruledText(valueRule);

/** A descriptor. Source: envoyproxy/ratelimit, `YamlDescriptor` in src/config/config_impl.go. */
function formOf(dialect: Dialect) {
  const limit: Form = map(rateLimitForms[dialect]);
  const { rows } = settings[dialect];
  return object(
    {
      title: "a descriptor",
      docs: "One entry of the descriptor that Envoy sends, and the entries nested below it.",
      ...(dialect === "headgate"
        ? { blank: ["value", "descriptors"], clashing: [["rate_limit", "rate_limits"]] }
        : {
            blank: ["value", "rate_limit", "descriptors", ...Object.keys(rows)],
            own: ["rate_limits", "on_store_failure", "headers", "body", "tellRule"],
          }),
    },
    {
      key: field(ruledText(keyRule), "The key of an entry. A `*` in it matches any text.", {
        needs: "the key of a descriptor entry",
      }),
      value: field(
        readBy(any(value, words("")), value.read),
        "The value of the entry. A `*` in it matches any text. Default: any value, " +
          "and each value has its own bucket.",
      ),
      rate_limit: field(asWritten(limit), "The limit of the descriptor that ends here."),
      rate_limits: field(
        asWritten(list(limit, limitsPerDescriptorMax, 1)),
        "Several limits of the descriptor that ends here. A request must fit all of them.",
      ),
      ...rows,
      descriptors: field(
        asWritten(list({ kind: "map", map: () => formBelow(dialect) })),
        "The possible next entries.",
      ),
    },
  );
}

/** The form of a descriptor, by dialect. */
export const descriptorForms = { ratelimit: formOf("ratelimit"), headgate: formOf("headgate") };

function formBelow(dialect: Dialect): MapForm {
  return descriptorForms[dialect];
}

/** Context of a list of descriptors. */
export interface DescriptorLevel {
  readonly reader: NodeReader;
  readonly dialect: Dialect;
  readonly rules: RuleList;
  readonly names: LimitNames;
  readonly domain: string;
  /** The domain's defaults for its limits. */
  readonly defaults: LimitDefaults;
  /** Number of regions of the deployment that reads the policy; undefined if unknown. */
  readonly regionCount: number | undefined;
  /** Siblings so far. In a domain of several files, they include those of earlier files. */
  readonly siblings: Siblings;
  /** The descriptors above, outermost first. */
  readonly above: DescriptorAncestors;
}

/** Values that a descriptor inherits from those above it. */
export interface DescriptorAncestors {
  readonly path: readonly PathStep[];
  /** One per step: see `Rule.sharePatterns`. */
  readonly sharePatterns: readonly (string | undefined)[];
  /** One per step. */
  readonly metricPath: readonly MetricStep[];
  /** Empty at the top. */
  readonly label: string;
}

/** Values above the top descriptors of a domain. */
export const domainAncestors: DescriptorAncestors = {
  path: [],
  sharePatterns: [],
  metricPath: [],
  label: "",
};

/** Reads a list of descriptors and their children into `level.rules`, parents first. */
export function readDescriptors(field: Field, level: DescriptorLevel): void {
  const items = level.reader.readList(field, "a list of descriptors");
  for (const item of items ?? []) {
    if (level.rules.isOverfull) return;
    readDescriptor(item, level);
  }
}

function readDescriptor(node: ParsedNode, level: DescriptorLevel): undefined {
  const { reader, dialect, rules, domain, names, regionCount } = level;
  const block = Block.at(reader, node, descriptorForms[dialect].shape);
  if (block === undefined) return undefined;
  const step = readStep(block, dialect);
  const own = readSettings(block, dialect);
  const { onStoreFailure = level.defaults.onStoreFailure } = own;
  const defaults = { ...level.defaults, onStoreFailure };
  const context = { dialect, domain, names, settings: own, defaults, regionCount };
  const read = readEffect(block, context);
  const disclosure = readDisclosure(block, defaults.disclosure);
  const above = step === undefined ? level.above : below(level.above, step, own);
  if (step !== undefined) {
    level.siblings.add(step, node, reader);
    refuseSharing(block, { step, isShared: own.isShared });
    if (!isPathInBounds(reader, node, above)) return undefined;
    // A policy with problems is never used, so the rules of a wrong descriptor have no effect.
    if (!rules.add(draftRule(domain, above, { read, settings: own, disclosure, dialect }))) {
      const message = `a policy cannot hold more than ${rulesMax} descriptors`;
      return reader.report(node, { id: "HG160", message });
    }
  }
  const children = block.field("descriptors");
  if (children === undefined) return undefined;
  readDescriptors(children, { ...level, siblings: new Siblings(), above });
  return undefined;
}

function below(
  above: DescriptorAncestors,
  step: PathStep,
  settings: RuleSettings,
): DescriptorAncestors {
  const text = stepLabel(step);
  return {
    path: [...above.path, step],
    sharePatterns: [...above.sharePatterns, sharePattern(step, settings)],
    metricPath: [...above.metricPath, metricStep(step, settings)],
    label: above.label === "" ? text : `${above.label}.${text}`,
  };
}

/** Builds the rule of the last step, with only the properties that are set. */
function draftRule(
  domain: string,
  { path, sharePatterns, metricPath, label }: DescriptorAncestors,
  { read, settings, disclosure, dialect }: DraftSettings,
): RuleDraft {
  const { effect, replaces } = read;
  const { metadata, headers, body, isDetailedMetric } = settings;
  const rule = { domain, path, effect, label };
  if (effect.kind === "none") return rule;
  const metrics = isDetailedMetric ? detailedMetric(path, sharePatterns) : metricPath;
  const extras: Partial<Rule> = {
    ...(replaces.length > 0 && { replaces }),
    ...(sharePatterns.some((pattern) => pattern !== undefined) && { sharePatterns }),
    ...(metrics.some(({ kind }) => kind === "request") && { metricPath: metrics }),
    ...(metadata !== undefined && { metadata }),
    ...(headers !== undefined && { headers }),
    ...(body !== undefined && { body }),
    ...(disclosure !== undefined && { disclosure }),
    ...(dialect === "ratelimit" && effect.kind === "limited" && { settlesOncePeeked: true }),
  };
  return { ...rule, ...extras };
}

/** Properties of a rule other than its path. */
interface DraftSettings {
  readonly read: ReadEffect;
  readonly settings: RuleSettings;
  readonly disclosure: RuleDisclosure | undefined;
  readonly dialect: Dialect;
}

function readStep(block: Block, dialect: Dialect): PathStep | undefined {
  const form = descriptorForms[dialect];
  const { reader } = block;
  const keyField = block.field("key");
  const key = readField(form, block, "key");
  const valueField = findValue(block);
  const value = valueField && readField(form, block, "value");
  if (keyField !== undefined && key !== undefined) warnOfNumber(reader, keyField, key);
  if (valueField !== undefined && value !== undefined) warnOfNumber(reader, valueField, value);
  if (key === undefined) return undefined;
  // If its value is unknown, the descriptor must not be read as the key alone.
  const isValueUnknown = valueField !== undefined && value === undefined;
  if (isValueUnknown || block.fields.misspelt.has("value")) return undefined;
  return value === undefined ? { key } : { key, value };
}

/** A number is read as the text of its digits, as in envoyproxy/ratelimit: `0x1F` is not `31`. */
function warnOfNumber(reader: NodeReader, field: Field, text: string): void {
  const node = reader.contentOf(field);
  if (field.value === undefined || !isScalar(node) || typeof node.value !== "number") return;
  const message = `"${field.name}" is a number and is read as the text ${quoteText(text)}`;
  reader.warn(field.value, { id: "HG172", message });
}

/** Returns `value`; an empty text counts as absent, as in envoyproxy/ratelimit: the key alone. */
function findValue(block: Block): Field | undefined {
  const written = block.field("value");
  const node = written && block.reader.contentOf(written);
  return isScalar(node) && node.value === "" ? undefined : written;
}

function isPathInBounds(
  reader: NodeReader,
  node: ParsedNode,
  { path, label }: DescriptorAncestors,
): boolean {
  if (path.length <= pathStepsMax && label.length <= pathCharsMax) return true;
  const size = `${path.length} levels, ${label.length} characters`;
  const message = `the path of this descriptor has ${size}`;
  const expected = `at most ${pathStepsMax} levels and ${pathCharsMax} characters`;
  reader.report(node, { id: "HG161", message, expected });
  return false;
}
