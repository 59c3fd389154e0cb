import { SpaceSaving } from "../core/collections/space-saving.js";
import { type Limit, type Rule, unitSeconds } from "../core/limits/limit.js";
import { PolicySimulator, type PolicySimulatorParts } from "../decide/shadow/policy-simulator.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import { type AskedPart, AskedServices } from "../simulate/asked-service.js";
import { InOrder } from "../simulate/in-order.js";
import type { LoggedRequest } from "../simulate/logged-request.js";
import { Timeline } from "../simulate/timeline.js";
import type { CallerDays } from "./caller-days.js";
import { CallerObserver, type ObservedDrain } from "./caller-observer.js";
import type { CallerDemand } from "./demand.js";
import { busiestQuantiles, ratios, topRatios, zipfExponent } from "./demand-figures.js";
import { observedRates } from "./number-scales.js";

/** Requests that are held back to bring them into the order of their beginnings. */
const heldMax = 4_096;

/** Days of UTC that are told apart; requests on further ones are left out. */
export const daysMax = 92;

/** Callers whose counts are kept, of each rule. */
const topCallersMax = 1_000;

/** Requests after which the bounds below are looked at: they are exceeded by that many at most. */
const boundCheckedEvery = 1_024;

/** What is kept in memory, for all limits together. */
export interface DemandBounds {
  /** Callers that are followed at once, 0.7 kB each. */
  readonly callersMax: number;
  /** Pairs of a caller and a day, 0.1 kB each. */
  readonly callerDaysMax: number;
}

/**
 * A caller with this part of the requests, for each caller that may be followed, is followed in any
 * case: these are a tenth of them at most.
 */
const heavyPart = 10;

/** What is kept by default: at most 140 MB. */
export const defaultDemandBounds: DemandBounds = { callersMax: 100_000, callerDaysMax: 500_000 };

interface DemandReaderParts extends PolicySimulatorParts {
  /** Asks the same limits of every request; undefined: as the policy's services say. */
  readonly forAll: Pick<ServicePolicy, "name" | "rateLimit"> | undefined;
  readonly bounds?: DemandBounds;
}

/** What was observed of one limit. */
export interface ObservedLimit {
  readonly limit: Limit;
  readonly callerDays: CallerDays;
}

/** What was observed of one rule: figures for people, and what limits are fitted to. */
export interface ObservedRule {
  readonly rule: Rule;
  readonly demand: CallerDemand;
  /** In the order of the rule. Limits by calendars are left out. */
  readonly limits: readonly ObservedLimit[];
}

/** All that was observed. */
export interface ObservedDemand {
  /** Most requests first. */
  readonly rules: readonly ObservedRule[];
  readonly requestCount: number;
  /** Requests that meet no limit. */
  readonly unlimitedCount: number;
  /** Requests that came too late to be sorted. */
  readonly lateCount: number;
  /** Requests on days beyond `daysMax`. */
  readonly leftOutCount: number;
}

/** Observes the requests of logs, in bounded memory however many there are. */
export class DemandReader {
  readonly #services: AskedServices;
  readonly #bounds: DemandBounds;
  readonly #order = new InOrder<Held>(heldMax);
  readonly #rules = new Map<Rule, RuleObserver>();
  readonly #days = new Set<number>();
  #requestCount = 0;
  #unlimitedCount = 0;
  #leftOutCount = 0;

  constructor(parts: DemandReaderParts) {
    const trial = new PolicySimulator(parts);
    this.#services = new AskedServices({ trial, forAll: parts.forAll });
    this.#bounds = parts.bounds ?? defaultDemandBounds;
  }

  /**
   * Takes the next request.
   *
   * @throws ServiceError REQUEST_INVALID; see `PolicySimulator`
   */
  take(request: LoggedRequest): void {
    const asked = this.#services.asked(request) ?? [];
    const parts = asked.flatMap((one) => (one.kind === "asked" ? [one] : []));
    const next = this.#order.push({ timeUs: request.timeUs, parts });
    if (next !== undefined) this.#observe(next);
  }

  /** What was observed; nothing may be taken after it. */
  finish(): ObservedDemand {
    for (const request of this.#order.drain()) this.#observe(request);
    const rules = [...this.#rules.values()].map((rule) => rule.finish());
    return {
      rules: rules.sort((a, b) => b.demand.requestCount - a.demand.requestCount),
      requestCount: this.#requestCount,
      unlimitedCount: this.#unlimitedCount,
      lateCount: this.#order.lateCount,
      leftOutCount: this.#leftOutCount,
    };
  }

  #observe({ timeUs, parts }: Held): void {
    const day = Math.floor(timeUs / dayUs);
    if (this.#days.size < daysMax) this.#days.add(day);
    if (!this.#days.has(day)) {
      this.#leftOutCount += 1;
      return;
    }
    this.#requestCount += 1;
    if (parts.every(({ shape }) => shape.rule === undefined)) this.#unlimitedCount += 1;
    for (const part of parts) this.#observePart(part, timeUs);
    if (this.#requestCount % boundCheckedEvery === 0) this.#keepBounds();
  }

  #observePart(part: AskedPart, timeUs: number): void {
    const { rule, hits, isRefund } = part.shape;
    // A peek and a refund ask for nothing.
    if (rule === undefined || isRefund || hits === 0) return;
    let observer = this.#rules.get(rule);
    if (observer === undefined) {
      observer = new RuleObserver(rule, this.#bounds);
      this.#rules.set(rule, observer);
    }
    observer.take(part.key, timeUs, hits);
  }

  #keepBounds(): void {
    const all = [...this.#rules.values()].flatMap(({ observers }) => observers);
    const excess = (countOf: (one: CallerObserver) => number, most: number): void => {
      for (;;) {
        const sum = all.reduce((total, one) => total + countOf(one), 0);
        if (sum <= most) return;
        all.reduce((a, b) => (countOf(b) > countOf(a) ? b : a)).halve();
      }
    };
    excess(({ liveCount }) => liveCount, this.#bounds.callersMax);
    excess(({ days }) => days.rowCount, this.#bounds.callerDaysMax);
  }
}

const dayUs = 86_400_000_000;

interface Held {
  readonly timeUs: number;
  readonly parts: readonly AskedPart[];
}

/** Observes the requests of one rule. */
class RuleObserver {
  readonly #rule: Rule;
  readonly #limits: readonly { readonly limit: Limit; readonly observer: CallerObserver }[];
  readonly #timeline = new Timeline();
  readonly #top = new SpaceSaving<string>(topCallersMax);
  readonly #byHour = Array.from({ length: 24 }, () => 0);
  readonly #byWeekday = Array.from({ length: 7 }, () => 0);
  readonly #days = new Set<number>();
  #count = 0;
  #startUs = Number.POSITIVE_INFINITY;
  #endUs = Number.NEGATIVE_INFINITY;

  constructor(rule: Rule, { callersMax }: DemandBounds) {
    this.#rule = rule;
    const limits = rule.effect.kind === "limited" ? rule.effect.limits : [];
    this.#limits = limits.flatMap((limit) => {
      const drain = drainOf(limit);
      return drain === undefined
        ? []
        : [{ limit, observer: new CallerObserver(drain, heavyPart / callersMax) }];
    });
  }

  get observers(): readonly CallerObserver[] {
    return this.#limits.map(({ observer }) => observer);
  }

  take(key: string, timeUs: number, hits: number): void {
    this.#count += 1;
    this.#startUs = Math.min(this.#startUs, timeUs);
    this.#endUs = Math.max(this.#endUs, timeUs);
    this.#timeline.add(timeUs);
    this.#top.add(key);
    const hour = Math.floor(timeUs / 3_600_000_000);
    const day = Math.floor(timeUs / dayUs);
    this.#days.add(day);
    bump(this.#byHour, ((hour % 24) + 24) % 24);
    // 1970 began on a Thursday.
    bump(this.#byWeekday, (((day + 3) % 7) + 7) % 7);
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

function bump(counts: number[], place: number): void {
  counts[place] = (counts[place] ?? 0) + 1;
}

/** Whether all requests of a rule have one bucket: no value of a caller is in its key. */
function isShared({ path, sharePatterns }: Rule): boolean {
  return path.every(({ key, value }, i) => {
    const isFixed = value !== undefined && !value.includes("*") && !key.includes("*");
    return isFixed || sharePatterns?.[i] !== undefined;
  });
}

/** Undefined for windows of a calendar. */
function drainOf({ algorithm, periodUs, unit, unitMultiplier }: Limit): ObservedDrain | undefined {
  if (algorithm?.kind === "fixed_window") {
    return algorithm.timeZone === undefined ? { kind: "windows", periodUs } : undefined;
  }
  const perUs = 1_000_000 * unitSeconds[unit] * unitMultiplier;
  return { kind: "rates", ratesPerUs: observedRates.map((hits) => hits / perUs) };
}
