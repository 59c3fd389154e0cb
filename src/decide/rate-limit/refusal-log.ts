import type { Rule } from "../../core/limits/limit.js";
import { defaultDisclosure } from "../../core/limits/reported-rule.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { PreparedQuery } from "./prepared-query.js";
import { refusingRule } from "./refusing-rule.js";

/** The most refusals that are told in a second, of all rules and services together. */
export const loggedRefusalsPerSecondMax = 10;

/** A refusal that stands for others: all names are the policy's, and no value is a caller's. */
export type LoggedRefusal = {
  /** Requests that the same rule or cause has refused since it was told last, with this one. */
  readonly refusedCount: number;
} & (
  | {
      readonly kind: "rule";
      readonly domain: string;
      readonly rule: string;
      /** Undefined where the limit has no name. */
      readonly limit: string | undefined;
    }
  | { readonly kind: "service"; readonly service: string; readonly cause: string }
);

interface RefusalLogParts {
  /** How often a rule, or a cause of a service, is told in a second; 0: never. */
  readonly perSecondMax: number;
  readonly onRefused: (reported: LoggedRefusal) => void;
}

/** What a service refuses, for one cause: whoever asks keeps it, and asks with the same one. */
export interface RefusingCause {
  readonly service: string;
  readonly cause: string;
}

/**
 * Tells of refusals that happen: a few of each rule in a second, a few in all, and counts the rest.
 * A refusal that is not told costs a look-up and two comparisons.
 */
export class RefusalLog {
  readonly #parts: RefusalLogParts;
  readonly #tallies = new WeakMap<Rule | RefusingCause, Tally>();
  readonly #all = new SecondBudget(loggedRefusalsPerSecondMax);
  #unloggedCount = 0;

  constructor(parts: RefusalLogParts) {
    this.#parts = parts;
  }

  /** Refusals that nobody was told of by a line of their own. */
  get unloggedCount(): number {
    return this.#unloggedCount;
  }

  /** A request was refused by a rule. */
  noteRule(prepared: PreparedQuery, verdict: Verdict, nowMs: number): void {
    const refusing = refusingRule(prepared, verdict);
    if (refusing === undefined) return;
    const { rule, limit } = refusing;
    if (!(rule.disclosure ?? defaultDisclosure).log) return;
    const refusedCount = this.#take(rule, nowMs);
    if (refusedCount === 0) return;
    const { domain, label } = rule;
    this.#parts.onRefused({
      kind: "rule",
      domain,
      rule: label,
      limit: limit.name,
      refusedCount,
    });
  }

  /** A request was refused by a service's admission. */
  noteCause(refusing: RefusingCause, nowMs: number): void {
    const refusedCount = this.#take(refusing, nowMs);
    if (refusedCount === 0) return;
    const { service, cause } = refusing;
    this.#parts.onRefused({ kind: "service", service, cause, refusedCount });
  }

  /** How many refusals the one at hand stands for; 0 where it is not told. */
  #take(who: Rule | RefusingCause, nowMs: number): number {
    let tally = this.#tallies.get(who);
    if (tally === undefined) {
      tally = new Tally(this.#parts.perSecondMax);
      this.#tallies.set(who, tally);
    }
    tally.refusedCount += 1;
    if (!tally.budget.hasSome(nowMs) || !this.#all.hasSome(nowMs)) {
      this.#unloggedCount += 1;
      return 0;
    }
    tally.budget.take();
    this.#all.take();
    const { refusedCount } = tally;
    tally.refusedCount = 0;
    return refusedCount;
  }
}

/** What one rule has refused since it was told. */
class Tally {
  readonly budget: SecondBudget;
  refusedCount = 0;

  constructor(perSecondMax: number) {
    this.budget = new SecondBudget(perSecondMax);
  }
}

/** So many in a second, counted from the first. */
class SecondBudget {
  readonly #max: number;
  #left: number;
  #sinceMs = Number.NEGATIVE_INFINITY;

  constructor(max: number) {
    this.#max = max;
    this.#left = max;
  }

  hasSome(nowMs: number): boolean {
    if (nowMs - this.#sinceMs >= 1_000) {
      this.#sinceMs = nowMs;
      this.#left = this.#max;
    }
    return this.#left > 0;
  }

  take(): void {
    this.#left -= 1;
  }
}
