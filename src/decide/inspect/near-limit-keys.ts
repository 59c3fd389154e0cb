import type { DescriptorEntry } from "../../core/limits/key.js";
import { isSelected, type RuleSelector, ruleName, type SeenRule, seenEntries } from "./seen-key.js";

/** Maximum number of rules whose keys are kept: those that were matched last. */
export const nearRulesMax = 128;

/** Maximum number of keys kept per rule: those that were seen last. */
export const nearKeysPerRuleMax = 64;

/** Keys are kept if at least this fraction of their burst is in use. */
const nearKeptRatioMin = 0.5;

/** Maximum age of a reported key, in milliseconds: buckets drain. */
export const nearKeptMs = 600_000;

/** A key that is near its limit, or over it. */
export interface NearLimitKey {
  readonly domain: string;
  readonly entries: readonly DescriptorEntry[];
  readonly limitName?: string;
  readonly ruleLabel: string;
  /** Used fraction of the burst. */
  readonly usedRatio: number;
  readonly isOver: boolean;
  readonly seenEpochMs: number;
}

/** State of a key when it was last seen. */
interface SeenNear {
  readonly limitName: string | undefined;
  /** 0 to 1; 1 if the key is over its limit. */
  readonly usedRatio: number;
  readonly isOver: boolean;
  readonly seenEpochMs: number;
}

/** The keys of one rule. Those that were seen last are at the end. */
interface RuleKeys {
  readonly rule: SeenRule;
  readonly keys: Map<string, SeenNear>;
}

/** Keys that a sample of calls has found near their limits: the newest ones, at most 10 MB. */
export class NearLimitKeys {
  readonly #rules = new Map<string, RuleKeys>();

  note(rule: SeenRule, key: string, seen: SeenNear): void {
    const isNear = seen.isOver || seen.usedRatio >= nearKeptRatioMin;
    const name = ruleName(rule);
    const known = this.#rules.get(name);
    if (!isNear) {
      known?.keys.delete(key);
      return;
    }
    const { keys } = known ?? { keys: new Map<string, SeenNear>() };
    this.#rules.delete(name);
    this.#rules.set(name, { rule: { domain: rule.domain, label: rule.label }, keys });
    keys.delete(key);
    keys.set(key, seen);
    dropFirst(keys, nearKeysPerRuleMax);
    dropFirst(this.#rules, nearRulesMax);
  }

  /** Returns the selected keys near their limits, the fullest first. */
  near(
    selector: RuleSelector,
    asked: {
      readonly usedRatioMin: number;
      readonly countMax: number;
      readonly epochMs: number;
    },
  ): readonly NearLimitKey[] {
    const found: (SeenNear & { rule: SeenRule; key: string })[] = [];
    for (const { rule, keys } of this.#rules.values()) {
      if (!isSelected(rule, selector)) continue;
      for (const [key, seen] of keys) {
        if (asked.epochMs - seen.seenEpochMs > nearKeptMs) keys.delete(key);
        else if (seen.usedRatio >= asked.usedRatioMin) found.push({ ...seen, rule, key });
      }
    }
    found.sort((one, other) => fullness(other) - fullness(one));
    return found.slice(0, asked.countMax).map(({ rule, key, limitName, ...seen }) => ({
      ...seen,
      domain: rule.domain,
      entries: seenEntries(key),
      ruleLabel: rule.label,
      ...(limitName === undefined ? {} : { limitName }),
    }));
  }
}

/** Keys over their limit come before keys that are only full. */
function fullness({ usedRatio, isOver }: SeenNear): number {
  return usedRatio + (isOver ? 1 : 0);
}

function dropFirst<V>(map: Map<string, V>, sizeMax: number): void {
  if (map.size <= sizeMax) return;
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}
