import type { Rule } from "../../core/limits/limit.js";
import { defaultDisclosure } from "../../core/limits/reported-rule.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { PreparedQuery } from "./prepared-query.js";
import { refusingRule } from "./refusing-rule.js";

/** Maximum number of denials that are logged per second, over all rules and services. */
export const loggedRefusalsPerSecondMax = 10;

/** A logged denial. All names are from the policy; no value is from a caller. */
export type LoggedRefusal = {
  /** Denials by the same rule or cause since the last logged one, including this one. */
  readonly refusedCount: number;
} & (
  | {
      readonly kind: "rule";
      readonly domain: string;
      readonly rule: string;
      /** Undefined if the limit has no name. */
      readonly limit: string | undefined;
    }
  | { readonly kind: "service"; readonly service: string; readonly cause: string }
);

interface RefusalLogParts {
  /** Maximum log lines per second for one rule, or for one cause of a service. 0: none. */
  readonly perSecondMax: number;
  readonly onRefused: (reported: LoggedRefusal) => void;
}

/** Why a service refuses requests. The caller reuses one object per cause. */
export interface RefusingCause {
  readonly service: string;
  readonly cause: string;
}

/**
 * Logs a sample of denials: a few per second for each rule, and a few in total. Counts the others.
 * A denial that is not logged costs one lookup and two comparisons.
 */
export class RefusalLog {
  readonly #parts: RefusalLogParts;
  readonly #tallies = new WeakMap<Rule | RefusingCause, Tally>();
  readonly #all = new SecondBudget(loggedRefusalsPerSecondMax);
  #unloggedCount = 0;

  constructor(parts: RefusalLogParts) {
    this.#parts = parts;
  }

  /** Denials without a log line of their own. */
  get unloggedCount(): number {
    return this.#unloggedCount;
  }

  /** A rule denied a request. */
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

  /** The admission control of a service refused a request. */
  noteCause(refusing: RefusingCause, nowMs: number): void {
    const refusedCount = this.#take(refusing, nowMs);
    if (refusedCount === 0) return;
    const { service, cause } = refusing;
    this.#parts.onRefused({ kind: "service", service, cause, refusedCount });
  }

  /** The number of denials that this log line represents; 0 if it is not logged. */
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

/** Denials of one rule since the last logged one. */
class Tally {
  readonly budget: SecondBudget;
  refusedCount = 0;

  constructor(perSecondMax: number) {
    this.budget = new SecondBudget(perSecondMax);
  }
}

/** A budget per second, which starts with the first use. */
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
