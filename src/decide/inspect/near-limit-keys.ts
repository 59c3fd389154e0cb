import type { DescriptorEntry } from "../../core/limits/key.js";
import { isSelected, type RuleSelector, ruleName, type SeenRule, seenEntries } from "./seen-key.js";

/** Rules whose keys are kept; of more, those that were met last. */
export const nearRulesMax = 128;

/** Keys of a rule that are kept; of more, those that were seen last. */
export const nearKeysPerRuleMax = 64;

/** Keys are kept from this part of their burst on. */
const nearKeptRatioMin = 0.5;

/** What was seen longer ago is not told: buckets drain. */
export const nearKeptMs = 600_000;

/** A key that is near its limit, or over it. */
export interface NearLimitKey {
  readonly domain: string;
  readonly entries: readonly DescriptorEntry[];
  readonly limitName?: string;
  readonly ruleLabel: string;
  /** Of the burst. */
  readonly usedRatio: number;
  readonly isOver: boolean;
  readonly seenEpochMs: number;
}

/** How a key was when it was seen last. */
interface SeenNear {
  readonly limitName: string | undefined;
  /** 0 to 1: what is over has used all. */
  readonly usedRatio: number;
  readonly isOver: boolean;
  readonly seenEpochMs: number;
}

/** The keys of one rule, those seen last at the end. */
interface RuleKeys {
  readonly rule: SeenRule;
  readonly keys: Map<string, SeenNear>;
}

/** Keys that a sample of calls has found near their limits: the newest ones, 10 MB at most. */
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

  /** The fullest first. */
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

/** What is over comes before what is only full. */
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
