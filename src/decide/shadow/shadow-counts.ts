import type { Rule } from "../../core/limits/limit.js";
import type { DescriptorVerdict, Verdict } from "../../core/limits/verdict.js";
import type { PreparedDescriptor, PreparedQuery } from "../rate-limit/prepared-query.js";

/** How calls that matched a rule would have been treated. Counts of calls, not of hits. */
export interface RuleDifference {
  readonly domain: string;
  readonly label: string;
  /** They pass now; the rule is among those that would deny them. */
  newlyDeniedCount: number;
  /** They are denied now, by this rule among others, and would pass. */
  newlyAllowedCount: number;
  sameCount: number;
  /** Buckets that started with the usage of those of the active policy. */
  beganLiveCount: number;
  /** Buckets that started empty, because the active policy has none with that key. */
  beganEmptyCount: number;
}

/** What a shadow policy would have decided differently. */
export interface ShadowCounts {
  /** Calls that were compared. */
  comparedCount: number;
  newlyDeniedCount: number;
  newlyAllowedCount: number;
  /** Calls that were not compared: they came too fast, or the store did not answer. */
  unseenCount: number;
  readonly rules: readonly RuleDifference[];
}

/** Maximum number of rules with separate differences. Further rules count only in the sums. */
export const shadowRulesMax = 1_000;

/** A call, and its verdict under one policy. */
interface EvaluatedCall {
  readonly prepared: Pick<PreparedQuery, "descriptors">;
  readonly verdict: Verdict;
}

/** Counts differences until they are taken. */
export class ShadowCounter {
  readonly #rulesMax: number;
  /** By a rule of either policy. Rules that are no longer active are not kept alive. */
  #byRule = new WeakMap<Rule, RuleDifference>();
  #byName = new Map<string, RuleDifference>();
  #comparedCount = 0;
  #newlyDeniedCount = 0;
  #newlyAllowedCount = 0;
  #unseenCount = 0;

  constructor(rulesMax = shadowRulesMax) {
    this.#rulesMax = rulesMax;
  }

  /** Counts a call that was not compared. */
  noteUnseen(): void {
    this.#unseenCount += 1;
  }

  /** Counts the start of a rule's bucket. */
  noteBeginning(domain: string, rule: Rule, kind: "live" | "empty"): void {
    const difference = this.#byRule.get(rule) ?? this.#find(domain, rule);
    if (difference === undefined) return;
    if (kind === "live") difference.beganLiveCount += 1;
    else difference.beganEmptyCount += 1;
  }

  /**
   * Counts a compared call. It differs if exactly one of the policies denies it. Then it counts for
   * the rules that deny it, and as the same for all other rules that it matched.
   */
  compare(domain: string, live: EvaluatedCall, candidate: EvaluatedCall): void {
    this.#comparedCount += 1;
    const { isDenied } = candidate.verdict;
    const differs = isDenied !== live.verdict.isDenied;
    if (differs && isDenied) this.#newlyDeniedCount += 1;
    else if (differs) this.#newlyAllowedCount += 1;
    const refusing = isDenied ? candidate : live;
    const counted = new Set<RuleDifference>();
    if (differs) {
      for (const rule of this.#rulesOf(domain, refusing, isOver)) {
        if (counted.has(rule)) continue;
        counted.add(rule);
        if (isDenied) rule.newlyDeniedCount += 1;
        else rule.newlyAllowedCount += 1;
      }
    }
    for (const side of [candidate, live]) {
      for (const rule of this.#rulesOf(domain, side, () => true)) {
        if (counted.has(rule)) continue;
        counted.add(rule);
        rule.sameCount += 1;
      }
    }
  }

  /** Takes the counts since the last call. Undefined: nothing. */
  take(): ShadowCounts | undefined {
    if (this.#comparedCount === 0 && this.#unseenCount === 0) return undefined;
    const counts = {
      comparedCount: this.#comparedCount,
      newlyDeniedCount: this.#newlyDeniedCount,
      newlyAllowedCount: this.#newlyAllowedCount,
      unseenCount: this.#unseenCount,
      rules: [...this.#byName.values()],
    };
    this.#byRule = new WeakMap();
    this.#byName = new Map();
    this.#comparedCount = 0;
    this.#newlyDeniedCount = 0;
    this.#newlyAllowedCount = 0;
    this.#unseenCount = 0;
    return counts;
  }

  *#rulesOf(
    domain: string,
    { prepared, verdict }: EvaluatedCall,
    counts: (status: DescriptorVerdict | undefined) => boolean,
  ): Iterable<RuleDifference> {
    for (let i = 0; i < prepared.descriptors.length; i += 1) {
      const rule = ruleOf(prepared.descriptors[i]);
      if (rule === undefined || !counts(verdict.statuses[i])) continue;
      const difference = this.#byRule.get(rule) ?? this.#find(domain, rule);
      if (difference !== undefined) yield difference;
    }
  }

  #find(domain: string, rule: Rule): RuleDifference | undefined {
    const name = JSON.stringify([domain, rule.label]);
    let difference = this.#byName.get(name);
    if (difference === undefined) {
      if (this.#byName.size >= this.#rulesMax) return undefined;
      difference = { domain, label: rule.label, ...noDifference };
      this.#byName.set(name, difference);
    }
    this.#byRule.set(rule, difference);
    return difference;
  }
}

/** The difference of a rule without calls. */
export const noDifference = {
  newlyDeniedCount: 0,
  newlyAllowedCount: 0,
  sameCount: 0,
  beganLiveCount: 0,
  beganEmptyCount: 0,
} as const;

function isOver(status: DescriptorVerdict | undefined): boolean {
  return status?.isOver === true;
}

function ruleOf(descriptor: PreparedDescriptor | undefined): Rule | undefined {
  return descriptor === undefined || !("rule" in descriptor) ? undefined : descriptor.rule;
}
