import type { ParsedNode } from "yaml";
import type { Limit, LimitDefaults, RuleEffect } from "../../core/limits/limit.js";
import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import { findNearestName } from "../text/nearest-name.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import type { Dialect } from "../text/shapes.js";
import type { LimitNames } from "./limit-names.js";
import { type RateLimit, readRateLimit } from "./rate-limit.js";
import type { ReplacedName } from "./replaces.js";
import { limitSettingNames, type RuleSettings } from "./rule-settings.js";

/** Maximum number of limits on one descriptor: each is a charge of every matching request. */
export const limitsPerDescriptorMax = 16;

interface EffectContext {
  readonly dialect: Dialect;
  readonly domain: string;
  readonly names: LimitNames;
  readonly settings: RuleSettings;
  readonly defaults: LimitDefaults;
  /** Number of regions of the deployment that reads the policy; undefined if unknown. */
  readonly regionCount: number | undefined;
}

/** Effect of a descriptor on matching requests. */
export interface ReadEffect {
  readonly effect: RuleEffect;
  /** Without duplicates. */
  readonly replaces: readonly string[];
}

/** Reads the limits of a descriptor; wrong ones are reported and left out. */
export function readEffect(block: Block, setting: EffectContext): ReadEffect {
  const { reader, fields } = block;
  const { dialect, settings, defaults, regionCount } = setting;
  const own = new Set<string>();
  const oneField = block.field("rate_limit");
  const severalField = block.field("rate_limits");
  const defineName = (name: string): void => {
    own.add(name);
    setting.names.define(setting.domain, name);
  };
  const needsExtProc = (warn: () => void): void => setting.names.needExtProc(setting.domain, warn);
  const needsCluster = (cluster: string, warn: () => void): void =>
    setting.names.needCluster(cluster, warn);
  const callbacks = { defineName, needsExtProc, needsCluster };
  const limitSetting = { dialect, mode: settings.mode, defaults, regionCount, ...callbacks };
  const readOne = (node: ParsedNode): RateLimit | undefined =>
    readRateLimit(reader, node, limitSetting);
  const one = oneField && readSingle(reader, oneField, readOne);
  const several = severalField ? readSeveral(reader, severalField, readOne) : [];
  if (severalField !== undefined && oneField !== undefined) {
    block.refusePair("rate_limits", "rate_limit");
  }
  if (dialect === "headgate") refuseIdleSettings(block, one);
  const read = one === undefined ? several : [one];
  const replaces = checkReplaces(reader, read, { own, setting });
  if (one?.kind === "unlimited") {
    const name = one.name === undefined ? {} : { name: one.name };
    return { effect: { kind: "unlimited", ...name }, replaces };
  }
  const limits = read.flatMap((item) => (item.kind === "limit" ? [item.limit] : []));
  if (limits.length > 0) return { effect: { kind: "limited", limits }, replaces };
  const leftEmpty = fields.blank.get("rate_limit");
  if (leftEmpty !== undefined) {
    reader.warn(leftEmpty.key, {
      id: "HG171",
      message: '"rate_limit" has no value, so nothing is limited',
    });
  }
  return { effect: { kind: "none" }, replaces };
}

/** Reports limit settings without a limit beside them, because they are not inherited. */
function refuseIdleSettings(block: Block, one: RateLimit | undefined): void {
  if (one?.kind === "unlimited" && block.field("on_store_failure") !== undefined) {
    block.refusePair("on_store_failure", "unlimited");
  }
  const { byName, misspelt } = block.fields;
  const limitNames = ["rate_limit", "rate_limits"];
  if (limitNames.some((name) => byName.has(name) || misspelt.has(name))) return;
  for (const name of limitSettingNames) {
    if (block.field(name) === undefined) continue;
    block.report(name, {
      id: "HG127",
      message: `"${name}" is set on a descriptor without a limit`,
    });
  }
}

function readSingle(
  reader: NodeReader,
  field: Field,
  readOne: (node: ParsedNode) => RateLimit | undefined,
): RateLimit | undefined {
  const node = reader.required(field, "a rate_limit: a map of names");
  return node && readOne(node);
}

function readSeveral(
  reader: NodeReader,
  field: Field,
  readOne: (node: ParsedNode) => RateLimit | undefined,
): readonly RateLimit[] {
  const items = reader.readList(field, "a list of limits");
  if (items === undefined) return [];
  if (items.length === 0) {
    const message = '"rate_limits" is empty';
    reader.report(field.key, { id: "HG124", message, expected: "a list of limits" });
  }
  if (items.length > limitsPerDescriptorMax) {
    const message = `a descriptor cannot have more than ${limitsPerDescriptorMax} limits`;
    reader.report(field.key, { id: "HG160", message });
    return [];
  }
  const identities = new Set<string>();
  return items.flatMap((item) => {
    const read = readOne(item);
    if (read === undefined) return [];
    if (read.kind === "unlimited") {
      const message = '"unlimited" cannot be one of several limits';
      reader.report(read.node, {
        id: "HG126",
        message,
        expected: '"unlimited" alone, in `rate_limit`',
      });
      return [];
    }
    refuseSameIdentity(reader, read, identities);
    return [read];
  });
}

/** State is stored by name, or by period for an unnamed limit: see core/limits/key.ts. */
function refuseSameIdentity(
  reader: NodeReader,
  { limit, node }: { readonly limit: Limit; readonly node: ParsedNode },
  identities: Set<string>,
): void {
  const identity = limit.name === undefined ? `p${limit.periodUs}` : `n${limit.name}`;
  if (identities.has(identity)) {
    const what =
      limit.name === undefined ? "period, and no name" : `name, ${quoteText(limit.name)}`;
    const message = `another limit of this descriptor has the same ${what}`;
    reader.report(node, { id: "HG152", message, expected: "a different `name` for each limit" });
  }
  identities.add(identity);
}

/** Returns the names that the limits replace. They must not be limits of this descriptor. */
function checkReplaces(
  reader: NodeReader,
  read: readonly RateLimit[],
  { own, setting }: { readonly own: ReadonlySet<string>; readonly setting: EffectContext },
): readonly string[] {
  const replaced = new Set<string>();
  for (const one of read.flatMap(({ replaces }) => replaces)) {
    if (own.has(one.value)) {
      const message = `${quoteText(one.value)} is a limit of this same descriptor`;
      reader.report(one.node, {
        id: "HG153",
        message,
        expected: "the name of a limit of another descriptor",
      });
    } else {
      replaced.add(one.value);
      // envoyproxy/ratelimit accepts a name without a limit: its files may refer to each other.
      if (setting.dialect === "headgate") refer(reader, one, setting);
    }
  }
  return [...replaced];
}

function refer(reader: NodeReader, one: ReplacedName, { domain, names }: EffectContext): void {
  const reportMissing = (known: readonly string[]): void => {
    const message = `no limit in this domain is named ${quoteText(one.value)}`;
    const suggestion = findNearestName(one.value, known);
    reader.report(one.node, { id: "HG154", message, suggestion });
  };
  names.refer({ domain, name: one.value, reportMissing });
}
