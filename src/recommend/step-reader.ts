import type { Rule } from "../core/limits/limit.js";
import type { DemandSteps } from "./demand.js";
import {
  boundCheckedEvery,
  daysMax,
  dayUs,
  defaultDemandBounds,
  keepBounds,
  type ObservedRule,
  RuleObserver,
} from "./rule-observer.js";

/** Hits of a caller in one step. */
export interface StepHits {
  /** Key of the bucket; any text for a rule with one bucket. */
  readonly caller: string;
  readonly startMs: number;
  readonly hits: number;
}

/**
 * Observes rules of which only the hits in steps of time are known, within the same memory bounds
 * as for a log. All hits of a step count at its start.
 */
export class StepReader {
  readonly #rules = new Map<Rule, RuleObserver>();
  readonly #days = new Set<number>();
  #stepCount = 0;

  /** Adds a rule. Without hits, nothing is observed of it. */
  add(rule: Rule, steps: DemandSteps): void {
    this.#rules.set(rule, new RuleObserver(rule, defaultDemandBounds, steps));
  }

  /** Takes a step of an added rule. The steps of each caller come in ascending order of time. */
  take(rule: Rule, { caller, startMs, hits }: StepHits): void {
    const timeUs = 1_000 * startMs;
    const day = Math.floor(timeUs / dayUs);
    if (this.#days.size < daysMax) this.#days.add(day);
    if (!(hits >= 1) || !this.#days.has(day)) return;
    this.#rules.get(rule)?.take(caller, timeUs, hits);
    this.#stepCount += 1;
    if (this.#stepCount % boundCheckedEvery === 0) {
      keepBounds(this.#rules.values(), defaultDemandBounds);
    }
  }

  /** Returns observed rules with hits, most hits first. Nothing may be taken afterwards. */
  finish(): readonly ObservedRule[] {
    return [...this.#rules.values()]
      .map((rule) => rule.finish())
      .filter(({ demand }) => demand.requestCount > 0)
      .sort((a, b) => b.demand.requestCount - a.demand.requestCount);
  }
}
