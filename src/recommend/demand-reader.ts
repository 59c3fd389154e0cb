import type { Rule } from "../core/limits/limit.js";
import { PolicySimulator, type PolicySimulatorParts } from "../decide/shadow/policy-simulator.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import { type AskedPart, AskedServices } from "../simulate/asked-service.js";
import { InOrder } from "../simulate/in-order.js";
import type { LoggedRequest } from "../simulate/logged-request.js";
import {
  boundCheckedEvery,
  type DemandBounds,
  daysMax,
  dayUs,
  defaultDemandBounds,
  keepBounds,
  type ObservedRule,
  RuleObserver,
} from "./rule-observer.js";

/** Maximum number of requests held back to sort them by their start times. */
const heldMax = 4_096;

interface DemandReaderParts extends PolicySimulatorParts {
  /** Service whose limits apply to every request; undefined: as the policy's services say. */
  readonly forAll: Pick<ServicePolicy, "name" | "rateLimit"> | undefined;
  readonly bounds?: DemandBounds;
}

/** Everything that was observed. */
export interface ObservedDemand {
  /** Most requests first. */
  readonly rules: readonly ObservedRule[];
  readonly requestCount: number;
  /** Requests that no limit applies to. */
  readonly unlimitedCount: number;
  /** Requests that came too late to be sorted. */
  readonly lateCount: number;
  /** Requests on days beyond `daysMax`. */
  readonly leftOutCount: number;
}

/** Observes the requests of logs in memory that does not grow with their number. */
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

  /** Returns what was observed. Nothing may be taken afterwards. */
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
    if (this.#requestCount % boundCheckedEvery === 0)
      keepBounds(this.#rules.values(), this.#bounds);
  }

  #observePart(part: AskedPart, timeUs: number): void {
    const { rule, hits, isRefund } = part.shape;
    // A peek and a refund demand nothing.
    if (rule === undefined || isRefund || hits === 0) return;
    let observer = this.#rules.get(rule);
    if (observer === undefined) {
      observer = new RuleObserver(rule, this.#bounds);
      this.#rules.set(rule, observer);
    }
    observer.take(part.key, timeUs, hits);
  }
}

interface Held {
  readonly timeUs: number;
  readonly parts: readonly AskedPart[];
}
