import {
  type ConcurrencySettings,
  createConcurrencyLimit,
} from "../../src/core/concurrency/concurrency-laws.js";
import type {
  ConcurrencyLimit,
  SampleOutcome,
} from "../../src/core/concurrency/concurrency-limit.js";
import { EventCalendar } from "../../src/simulate/engine/calendar.js";
import {
  burstyMs,
  type DrawMs,
  exponentialMs,
  fixedMs,
} from "../../src/simulate/engine/distributions.js";
import { Station } from "../../src/simulate/engine/station.js";
import { FakeRandom } from "../support/fake-random.js";
import { quantile, startArrivals } from "../support/station.js";
import { heavyTailedMs } from "./heavy-tailed.js";

/** One service behind one law, and who wants something of it. Times in milliseconds. */
export interface LawScenario {
  readonly law: ConcurrencySettings;
  readonly serverCount: number;
  readonly serviceMs: number;
  readonly service: "exponential" | "fixed" | "heavyTailed";
  readonly arrivals: "poisson" | "bursty" | "heavyTailed";
  /** Requests that come, as a multiple of what the service can serve at its start. */
  readonly loadRatio: number;
  /** How long a client waits. */
  readonly patienceMs: number;
  /** Whether the service stops work for a client who has left, or finishes it for nobody. */
  readonly afterLeaving: "stops" | "goesOn";
  /** What changes, by time. */
  readonly changes: readonly CapacityChange[];
}

/** A new capacity from some time on. */
export interface CapacityChange {
  readonly atMs: number;
  readonly serverCount: number;
  readonly serviceMs: number;
}

/** What was seen in a span of time. */
export interface LawSpan {
  /** Served in time, as a share of what the servers could have done. */
  readonly goodputRatio: number;
  /** Latency of the served; NaN where nobody was. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly servedCount: number;
  readonly lateCount: number;
  readonly refusedCount: number;
  /** The limit at each full second. */
  readonly limits: readonly number[];
}

/** How long a second is. */
const secondMs = 1_000;

/** A scenario that runs, looked at span by span. */
export class LawRun {
  readonly law: ConcurrencyLimit;
  readonly #scenario: LawScenario;
  readonly #calendar = new EventCalendar();
  readonly #random: FakeRandom;
  readonly #station: Station;
  #serviceMs: number;
  #inFlight = 0;
  #rttsMs: number[] = [];
  #lateCount = 0;
  #refusedCount = 0;

  constructor(scenario: LawScenario, seed: number) {
    const { law, serverCount, serviceMs, changes } = scenario;
    this.#scenario = scenario;
    this.#random = new FakeRandom(seed);
    this.law = createConcurrencyLimit(law);
    this.#serviceMs = serviceMs;
    const unit = unitDraw(scenario, this.#random);
    this.#station = new Station(this.#calendar, serverCount, () => unit() * this.#serviceMs);
    for (const change of changes) {
      this.#calendar.after(change.atMs, () => {
        this.#serviceMs = change.serviceMs;
        this.#station.serverCount = change.serverCount;
      });
    }
    const gapMs = gapDraw(scenario, this.#random);
    const untilMs = Number.POSITIVE_INFINITY;
    startArrivals(this.#calendar, { gapMs, untilMs }, () => this.#arrive());
  }

  /** Lives on for that long. */
  span(spanMs: number): LawSpan {
    const startMs = this.#calendar.nowMs;
    this.#rttsMs = [];
    this.#lateCount = 0;
    this.#refusedCount = 0;
    let capacityCount = 0;
    const limits: number[] = [];
    for (let atMs = startMs; atMs < startMs + spanMs; atMs += secondMs) {
      this.#calendar.runUntil(Math.min(atMs + secondMs, startMs + spanMs));
      capacityCount += (this.#station.serverCount * secondMs) / this.#serviceMs;
      limits.push(this.law.limit);
    }
    const servedCount = this.#rttsMs.length;
    return {
      goodputRatio: servedCount / capacityCount,
      p50Ms: quantile(this.#rttsMs, 0.5),
      p99Ms: quantile(this.#rttsMs, 0.99),
      servedCount,
      lateCount: this.#lateCount,
      refusedCount: this.#refusedCount,
      limits,
    };
  }

  #arrive(): void {
    const isShed = this.#random.next() < (this.law.shedRatio?.(this.#calendar.nowMs) ?? 0);
    if (isShed || this.#inFlight >= this.law.limit) {
      this.#refusedCount += 1;
      return;
    }
    this.#inFlight += 1;
    const startMs = this.#calendar.nowMs;
    const inFlight = this.#inFlight;
    let isOver = false;
    const end = (outcome: SampleOutcome): void => {
      isOver = true;
      this.#inFlight -= 1;
      const endMs = this.#calendar.nowMs;
      this.law.record({ startMs, endMs, inFlight, position: inFlight, outcome });
    };
    const job = this.#station.enter({
      ended: () => {
        if (isOver) return;
        cancelPatience();
        this.#rttsMs.push(this.#calendar.nowMs - startMs);
        end("success");
      },
    });
    const cancelPatience = this.#calendar.after(this.#scenario.patienceMs, () => {
      if (isOver) return;
      this.#lateCount += 1;
      if (this.#scenario.afterLeaving === "stops") job.leave();
      end("dropped");
    });
  }
}

/** Service times with a mean of 1. */
function unitDraw({ service }: LawScenario, random: FakeRandom): DrawMs {
  if (service === "fixed") return fixedMs(1);
  if (service === "heavyTailed") return heavyTailedMs(random, { meanMs: 1 });
  return exponentialMs(random, 1);
}

function gapDraw(scenario: LawScenario, random: FakeRandom): DrawMs {
  const { arrivals, serverCount, serviceMs, loadRatio } = scenario;
  const meanMs = serviceMs / serverCount / loadRatio;
  if (arrivals === "bursty") return burstyMs(random, { meanMs, burstCount: 20 });
  if (arrivals === "heavyTailed") return heavyTailedMs(random, { meanMs });
  return exponentialMs(random, meanMs);
}
