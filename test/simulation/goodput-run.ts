import type { Random } from "../../src/core/base/clock.js";
import { type Priority, priorities } from "../../src/core/settings/admission-settings.js";
import { FakeRandom } from "../support/fake-random.js";
import {
  type DrawMs,
  EventCalendar,
  exponentialMs,
  quantile,
  Station,
  startArrivals,
} from "../support/station.js";

/** A service, and who wants something of it. Times in milliseconds. */
export interface GoodputWorld {
  readonly workerCount: number;
  readonly serviceMs: number;
  /** Requests that come, as a multiple of what the service can serve at its start. */
  readonly loadRatio: number;
  /** What part of them is of a class; the rest of them is low. */
  readonly parts: Readonly<Partial<Record<Priority, number>>>;
  /** How long a caller waits; it says so. */
  readonly patienceMs: number;
  /** Workers that there are from a time on, as a part of those at the start. */
  readonly changes: readonly { readonly atMs: number; readonly workerRatio: number }[];
}

/** One request that asks to be let in. */
export interface GoodputCaller {
  readonly priority: Priority;
  readonly user: string;
  readonly patienceMs: number;
  /** It is let in: its work begins. */
  admit(): void;
  /** It is refused. */
  refuse(): void;
}

/** Told how a request that was let in, or waits, has ended. */
export interface GoodputTicket {
  ended(how: "served" | "left"): void;
}

/** What stands before the service. */
export interface Protection {
  ask(caller: GoodputCaller): GoodputTicket;
  /** Permits now. */
  readonly limit: number;
}

/** What was seen in a span. */
export interface GoodputSpan {
  /** Served in time, as a share of what the workers could have done. */
  readonly goodputRatio: number;
  /** Not refused and not given up, as a share of those who asked, by class. */
  readonly servedRatio: Readonly<Record<Priority, number>>;
  /** Let in, and not served in time, as a share of those who were let in. */
  readonly lateRatio: number;
  /** From asking to the end of the answer. */
  readonly p99Ms: number;
  /** Permits at the end. */
  readonly limit: number;
}

/** A world that runs behind a protection, looked at span by span. */
export class GoodputRun {
  readonly #calendar = new EventCalendar();
  readonly #world: GoodputWorld;
  readonly #station: Station;
  readonly #classes: Random;
  readonly #works: DrawMs;
  readonly #protection: Protection;
  #workerCount: number;
  #capacityMs = 0;
  #capacitySinceMs = 0;
  #latenciesMs: number[] = [];
  #asked = zero();
  #lost = zero();
  #admittedCount = 0;
  #lateCount = 0;

  constructor(world: GoodputWorld, seed: number, protect: (calendar: EventCalendar) => Protection) {
    this.#world = world;
    this.#workerCount = world.workerCount;
    this.#classes = new FakeRandom(seed * 3 + 1);
    this.#works = exponentialMs(new FakeRandom(seed * 3 + 2), world.serviceMs);
    this.#protection = protect(this.#calendar);
    const none = (): number => {
      throw new Error("each job brings its work");
    };
    this.#station = new Station(this.#calendar, world.workerCount, none);
    for (const { atMs, workerRatio } of world.changes) {
      this.#calendar.after(atMs, () => {
        this.#account();
        this.#workerCount = Math.round(world.workerCount * workerRatio);
        this.#station.serverCount = this.#workerCount;
      });
    }
    const { serviceMs, workerCount, loadRatio } = world;
    const gapMs = exponentialMs(new FakeRandom(seed * 3), serviceMs / workerCount / loadRatio);
    const untilMs = Number.POSITIVE_INFINITY;
    startArrivals(this.#calendar, { gapMs, untilMs }, () => this.#arrive());
  }

  span(spanMs: number): GoodputSpan {
    this.#account();
    this.#capacityMs = 0;
    this.#latenciesMs = [];
    this.#asked = zero();
    this.#lost = zero();
    this.#admittedCount = 0;
    this.#lateCount = 0;
    this.#calendar.runUntil(this.#calendar.nowMs + spanMs);
    this.#account();
    const servedCount = this.#latenciesMs.length;
    const share = (one: Priority): number => 1 - this.#lost[one] / Math.max(1, this.#asked[one]);
    return {
      goodputRatio: servedCount / (this.#capacityMs / this.#world.serviceMs),
      servedRatio: {
        critical: share("critical"),
        high: share("high"),
        normal: share("normal"),
        low: share("low"),
      },
      lateRatio: this.#admittedCount === 0 ? 0 : this.#lateCount / this.#admittedCount,
      p99Ms: quantile(this.#latenciesMs, 0.99),
      limit: this.#protection.limit,
    };
  }

  /** Worker time that there was. */
  #account(): void {
    const { nowMs } = this.#calendar;
    this.#capacityMs += (nowMs - this.#capacitySinceMs) * this.#workerCount;
    this.#capacitySinceMs = nowMs;
  }

  #drawClass(): Priority {
    let draw = this.#classes.next();
    for (const priority of priorities) {
      draw -= this.#world.parts[priority] ?? 0;
      if (draw < 0) return priority;
    }
    return "low";
  }

  #arrive(): void {
    const priority = this.#drawClass();
    const askedMs = this.#calendar.nowMs;
    const { patienceMs } = this.#world;
    this.#asked[priority] += 1;
    let state: "asking" | "admitted" | "over" = "asking";
    let leave = (): void => {};
    const caller: GoodputCaller = {
      priority,
      user: `user-${Math.floor(this.#classes.next() * 500)}`,
      patienceMs,
      admit: () => {
        state = "admitted";
        this.#admittedCount += 1;
        const job = this.#station.enter(
          {
            ended: () => {
              if (state === "over") return;
              state = "over";
              cancelPatience();
              this.#latenciesMs.push(this.#calendar.nowMs - askedMs);
              ticket.ended("served");
            },
          },
          this.#works(),
        );
        leave = () => job.leave();
      },
      refuse: () => {
        state = "over";
        this.#lost[priority] += 1;
        cancelPatience();
      },
    };
    const cancelPatience = this.#calendar.after(patienceMs, () => {
      if (state === "over") return;
      if (state === "admitted") this.#lateCount += 1;
      state = "over";
      this.#lost[priority] += 1;
      leave();
      ticket.ended("left");
    });
    const ticket = this.#protection.ask(caller);
  }
}

function zero(): Record<Priority, number> {
  return { critical: 0, high: 0, normal: 0, low: 0 };
}
