import { SpaceSaving } from "../core/collections/space-saving.js";
import { type Limit, type Rule, unitSeconds } from "../core/limits/limit.js";
import { Timeline } from "../simulate/timeline.js";
import type { CallerDays } from "./caller-days.js";
import { CallerObserver, type ObservedDrain } from "./caller-observer.js";
import type { CallerDemand } from "./demand.js";
import { busiestQuantiles, ratios, topRatios, zipfExponent } from "./demand-figures.js";
import { observedRates } from "./number-scales.js";

/** Maximum number of days (UTC). Requests on further days are left out. */
export const daysMax = 92;

/** Maximum number of callers whose counts are kept for each rule. */
const topCallersMax = 1_000;

/** Requests between two checks of the bounds below, which are exceeded by at most that many. */
export const boundCheckedEvery = 1_024;

/** Bounds of what is kept in memory for all limits together. */
export interface DemandBounds {
  /** Callers that are followed at the same time, 0.7 kB each. */
  readonly callersMax: number;
  /** Caller-day pairs, 0.1 kB each. */
  readonly callerDaysMax: number;
}

/**
 * A caller is always followed if it sends this part of the requests divided by the number of
 * callers that may be followed. These are at most a tenth of them.
 */
const heavyPart = 10;

/** Default bounds: at most 140 MB. */
export const defaultDemandBounds: DemandBounds = { callersMax: 100_000, callerDaysMax: 500_000 };

/** Observations of one limit. */
export interface ObservedLimit {
  readonly limit: Limit;
  readonly callerDays: CallerDays;
}

/** Observations of one rule: figures for people, and the data that limits are fitted to. */
export interface ObservedRule {
  readonly rule: Rule;
  readonly demand: CallerDemand;
  /** In the order of the rule. Limits with calendar windows are left out. */
  readonly limits: readonly ObservedLimit[];
}

/** A day of UTC, in microseconds. */
export const dayUs = 86_400_000_000;

/** Observes the requests of one rule. */
export class RuleObserver {
  readonly #rule: Rule;
  readonly #steps: CallerDemand["steps"];
  readonly #limits: readonly { readonly limit: Limit; readonly observer: CallerObserver }[];
  readonly #timeline = new Timeline();
  readonly #top = new SpaceSaving<string>(topCallersMax);
  readonly #byHour = Array.from({ length: 24 }, () => 0);
  readonly #byWeekday = Array.from({ length: 7 }, () => 0);
  readonly #days = new Set<number>();
  #count = 0;
  #startUs = Number.POSITIVE_INFINITY;
  #endUs = Number.NEGATIVE_INFINITY;

  /** @param steps present if hits are known only in steps, which are taken at their starts */
  constructor(rule: Rule, { callersMax }: DemandBounds, steps?: CallerDemand["steps"]) {
    this.#rule = rule;
    this.#steps = steps;
    const stepUs = 1_000_000 * (steps?.seconds ?? 0);
    const limits = rule.effect.kind === "limited" ? rule.effect.limits : [];
    this.#limits = limits.flatMap((limit) => {
      const drain = drainOf(limit);
      if (drain === undefined || !isCountable(drain, stepUs)) return [];
      return [{ limit, observer: new CallerObserver(drain, heavyPart / callersMax, stepUs) }];
    });
  }

  get observers(): readonly CallerObserver[] {
    return this.#limits.map(({ observer }) => observer);
  }

  take(key: string, timeUs: number, hits: number): void {
    const requests = this.#steps === undefined ? 1 : hits;
    this.#count += requests;
    this.#startUs = Math.min(this.#startUs, timeUs);
    this.#endUs = Math.max(this.#endUs, timeUs + 1_000_000 * (this.#steps?.seconds ?? 0));
    this.#timeline.add(timeUs, requests);
    this.#top.add(key, requests);
    const hour = Math.floor(timeUs / 3_600_000_000);
    const day = Math.floor(timeUs / dayUs);
    this.#days.add(day);
    bump(this.#byHour, ((hour % 24) + 24) % 24, requests);
    // 1970 began on a Thursday.
    bump(this.#byWeekday, (((day + 3) % 7) + 7) % 7, requests);
    for (const { observer } of this.#limits) observer.take(key, timeUs, hits);
  }

  finish(): ObservedRule {
    const limits = this.#limits.map(({ limit, observer }) => ({
      limit,
      callerDays: observer.finish(),
    }));
    const [first] = limits;
    const { domain, label } = this.#rule;
    const demand: CallerDemand = {
      domain,
      rule: label,
      isShared: isShared(this.#rule),
      ...(this.#steps && { steps: this.#steps }),
      requestCount: this.#count,
      callerCount: Math.round(sum(first?.callerDays.weights() ?? [])),
      sampledRatio: first?.callerDays.sampledRatio ?? 1,
      startUs: this.#startUs,
      endUs: this.#endUs,
      dayCount: this.#days.size,
      requests: this.#timeline.read(),
      busiest: busiestQuantiles(first?.callerDays),
      byHour: ratios(this.#byHour),
      byWeekday: ratios(this.#byWeekday),
      topRatios: topRatios(this.#top),
      zipfExponent: zipfExponent(this.#top),
    };
    return { rule: this.#rule, demand, limits };
  }
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function bump(counts: number[], place: number, by: number): void {
  counts[place] = (counts[place] ?? 0) + by;
}

/** Reports whether all requests of a rule share a bucket: its key has no value of a caller. */
export function isShared(rule: Rule): boolean {
  return rule.path.every((_, i) => isFixedEntry(rule, i));
}

/** Reports whether a rule's metrics name its buckets: `detailed_metric` and `value_to_metric`. */
export function namesCallers(rule: Rule): boolean {
  const { metricPath = [] } = rule;
  return (
    metricPath.length > 0 &&
    metricPath.every(({ kind }, i) => {
      return kind === "request" || isFixedEntry(rule, i);
    })
  );
}

/** Reports whether an entry of a bucket's key is the same for all requests. */
function isFixedEntry({ path, sharePatterns }: Rule, i: number): boolean {
  const { key = "", value } = path[i] ?? {};
  const isFixed = value !== undefined && !value.includes("*") && !key.includes("*");
  return isFixed || sharePatterns?.[i] !== undefined;
}

/** Returns how a limit drains. Undefined for calendar windows. */
function drainOf({ algorithm, periodUs, unit, unitMultiplier }: Limit): ObservedDrain | undefined {
  if (algorithm?.kind === "fixed_window") {
    return algorithm.timeZone === undefined ? { kind: "windows", periodUs } : undefined;
  }
  const perUs = 1_000_000 * unitSeconds[unit] * unitMultiplier;
  return { kind: "rates", ratesPerUs: observedRates.map((hits) => hits / perUs) };
}

/** Reports whether each step lies within one window, or each window consists of whole steps. */
function isCountable(drain: ObservedDrain, stepUs: number): boolean {
  if (drain.kind === "rates" || stepUs === 0) return true;
  return drain.periodUs % stepUs === 0 || stepUs % drain.periodUs === 0;
}

/** Repeatedly halves the callers of the limits that follow the most, until all bounds are met. */
export function keepBounds(rules: Iterable<RuleObserver>, bounds: DemandBounds): void {
  const all = [...rules].flatMap(({ observers }) => observers);
  const excess = (countOf: (one: CallerObserver) => number, most: number): void => {
    for (;;) {
      const sum = all.reduce((total, one) => total + countOf(one), 0);
      if (sum <= most) return;
      all.reduce((a, b) => (countOf(b) > countOf(a) ? b : a)).halve();
    }
  };
  excess(({ liveCount }) => liveCount, bounds.callersMax);
  excess(({ days }) => days.rowCount, bounds.callerDaysMax);
}
