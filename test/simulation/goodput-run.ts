import { type Priority, priorities } from "../../src/core/admission/priority.js";
import type { Random } from "../../src/core/base/clock.js";
import { EventCalendar } from "../../src/simulate/engine/calendar.js";
import { type DrawMs, exponentialMs, fixedMs } from "../../src/simulate/engine/distributions.js";
import { Station, type StationCall, type StationJob } from "../../src/simulate/engine/station.js";
import { FakeRandom } from "../support/fake-random.js";
import { quantile, startArrivals } from "../support/station.js";
import { heavyTailedMs } from "./heavy-tailed.js";

/** How service times are distributed; see `workDraw`. */
export const serviceKinds = [
  "exponential",
  "fixed",
  "bimodal",
  "heavyTailed",
  "autocorrelated",
] as const;

/** One of them. */
export type ServiceKind = (typeof serviceKinds)[number];

/** What is otherwise from some time on. */
export interface GoodputChange {
  readonly atMs: number;
  /** Workers from then on, as a part of those at the start. Default: as before */
  readonly workerRatio?: number;
  /** Workers beyond those are lost with what they work on, and with a part of the protection. */
  readonly isZoneLost?: boolean;
  /** Requests from then on, as a multiple of what the service could serve at its start. */
  readonly loadRatio?: number;
}

/** A service, and who wants something of it. Times in milliseconds. */
export interface GoodputWorld {
  readonly workerCount: number;
  readonly serviceMs: number;
  /** Requests that come, as a multiple of what the service can serve at its start. */
  readonly loadRatio: number;
  /** What part of them is of a class; the rest of them is low. */
  readonly parts: Readonly<Partial<Record<Priority, number>>>;
  /** How long a caller waits. */
  readonly patienceMs: number;
  /** Whether it says so, or just leaves. Default: it says so */
  readonly patience?: "stated" | "unstated";
  /** A part of the callers waits for another time. Default: none does */
  readonly impatient?: { readonly ratio: number; readonly patienceMs: number };
  /** Whether work goes on for callers that have left. Default: it is given up */
  readonly isWorkedOff?: boolean;
  readonly changes: readonly GoodputChange[];
  /** Default exponential. */
  readonly service?: ServiceKind;
  /** For so long after the start work takes longer: four times at first, then ever less. */
  readonly warmUpMs?: number;
  /** All work stands still now and then, as while garbage is collected. */
  readonly pauses?: { readonly everyMs: number; readonly lengthMs: number };
}

/** One request that asks to be let in. */
export interface GoodputCaller {
  readonly priority: Priority;
  readonly user: string;
  /** How long it waits; undefined where it does not say. */
  readonly statedMs: number | undefined;
  /** It is let in: its work begins. */
  admit(): void;
  /** It is refused. */
  refuse(): void;
}

/** Told how a request that was let in, or waits, has ended. */
export interface GoodputTicket {
  ended(how: "served" | "left" | "failed"): void;
}

/** What stands before the service. */
export interface Protection {
  ask(caller: GoodputCaller): GoodputTicket;
  /** One of two zones is lost, and what of the protection runs there. Default: none of it does */
  loseZone?(): void;
  /** Permits now. */
  readonly limit: number;
}

/** What was seen in a span. */
export interface GoodputSpan {
  /** Served in time, as a share of what the workers could have done. */
  readonly goodputRatio: number;
  /** Work of those, as a share of the workers' time: so few long ones count as they should. */
  readonly usefulRatio: number;
  /** Requests that asked, by class. */
  readonly asked: Readonly<Record<Priority, number>>;
  /** Not refused and not given up, as a share of those who asked, by class. */
  readonly servedRatio: Readonly<Record<Priority, number>>;
  /** Let in, and not served in time, as a share of those who were let in. */
  readonly lateRatio: number;
  readonly admittedCount: number;
  /** Late without those whose own work takes longer than their callers wait. */
  readonly avoidablyLateCount: number;
  /** From asking to the end of the answer. */
  readonly p99Ms: number;
  /** The same of each request that was served. */
  readonly latenciesMs: readonly number[];
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
  /** Requests that a worker has begun. */
  readonly #working = new Set<Arrival>();
  readonly #host: ArrivalHost;
  #workerCount: number;
  #loadRatio: number;
  #capacityMs = 0;
  #capacitySinceMs = 0;
  #usefulMs = 0;
  #latenciesMs: number[] = [];
  #asked = zero();
  #lost = zero();
  #admittedCount = 0;
  #lateCount = 0;
  #avoidablyLateCount = 0;

  constructor(world: GoodputWorld, seed: number, protect: (calendar: EventCalendar) => Protection) {
    this.#world = world;
    this.#workerCount = world.workerCount;
    this.#loadRatio = world.loadRatio;
    this.#classes = new FakeRandom(seed * 3 + 1);
    this.#works = workDraw(world, new FakeRandom(seed * 3 + 2));
    this.#protection = protect(this.#calendar);
    const none = (): number => {
      throw new Error("each job brings its work");
    };
    this.#station = new Station(this.#calendar, world.workerCount, none);
    this.#host = {
      isWorkedOff: world.isWorkedOff ?? false,
      working: this.#working,
      admitted: (arrival) => this.#admitted(arrival),
      served: (arrival) => this.#served(arrival),
      lost: (arrival, how) => this.#noteLost(arrival, how),
    };
    for (const change of world.changes) {
      this.#calendar.after(change.atMs, () => this.#change(change));
    }
    if (world.pauses !== undefined) this.#pauseNowAndThen(world.pauses, seed);
    const { serviceMs, workerCount } = world;
    const unitMs = exponentialMs(new FakeRandom(seed * 3), serviceMs / workerCount);
    const gapMs = (): number => unitMs() / this.#loadRatio;
    const untilMs = Number.POSITIVE_INFINITY;
    startArrivals(this.#calendar, { gapMs, untilMs }, () => this.#arrive());
  }

  span(spanMs: number): GoodputSpan {
    this.#account();
    this.#capacityMs = 0;
    this.#usefulMs = 0;
    this.#latenciesMs = [];
    this.#asked = zero();
    this.#lost = zero();
    this.#admittedCount = 0;
    this.#lateCount = 0;
    this.#avoidablyLateCount = 0;
    this.#calendar.runUntil(this.#calendar.nowMs + spanMs);
    this.#account();
    const servedCount = this.#latenciesMs.length;
    const share = (one: Priority): number => 1 - this.#lost[one] / Math.max(1, this.#asked[one]);
    return {
      goodputRatio: servedCount / (this.#capacityMs / this.#world.serviceMs),
      usefulRatio: this.#usefulMs / this.#capacityMs,
      asked: this.#asked,
      servedRatio: {
        critical: share("critical"),
        high: share("high"),
        normal: share("normal"),
        low: share("low"),
      },
      lateRatio: this.#admittedCount === 0 ? 0 : this.#lateCount / this.#admittedCount,
      admittedCount: this.#admittedCount,
      avoidablyLateCount: this.#avoidablyLateCount,
      p99Ms: quantile(this.#latenciesMs, 0.99),
      latenciesMs: this.#latenciesMs,
      limit: this.#protection.limit,
    };
  }

  /** Worker time that there was. */
  #account(): void {
    const { nowMs } = this.#calendar;
    this.#capacityMs += (nowMs - this.#capacitySinceMs) * this.#workerCount;
    this.#capacitySinceMs = nowMs;
  }

  #change({ workerRatio, loadRatio, isZoneLost = false }: GoodputChange): void {
    this.#account();
    this.#loadRatio = loadRatio ?? this.#loadRatio;
    if (isZoneLost) {
      this.#protection.loseZone?.();
      const [...working] = this.#working;
      const keptCount = Math.round(working.length * (workerRatio ?? 1));
      for (const arrival of working.slice(keptCount)) arrival.fail();
    }
    if (workerRatio === undefined) return;
    this.#workerCount = Math.round(this.#world.workerCount * workerRatio);
    this.#station.serverCount = this.#workerCount;
  }

  #pauseNowAndThen({ everyMs, lengthMs }: NonNullable<GoodputWorld["pauses"]>, seed: number): void {
    const gapMs = exponentialMs(new FakeRandom(seed * 3 + 11), everyMs);
    const untilMs = Number.POSITIVE_INFINITY;
    startArrivals(this.#calendar, { gapMs, untilMs }, () => this.#station.pause(lengthMs));
  }

  /** The work of the next request: longer while the service warms up. */
  #nextWorkMs(): number {
    const { warmUpMs = 0 } = this.#world;
    const coldRatio = Math.max(0, 1 - this.#calendar.nowMs / Math.max(1, warmUpMs));
    return this.#works() * (1 + 3 * coldRatio);
  }

  #admitted(arrival: Arrival): StationJob {
    this.#admittedCount += 1;
    arrival.workMs = this.#nextWorkMs();
    return this.#station.enter(arrival, arrival.workMs);
  }

  #served({ workMs, askedMs }: Arrival): void {
    this.#usefulMs += workMs;
    this.#latenciesMs.push(this.#calendar.nowMs - askedMs);
  }

  #noteLost({ priority, state, workMs }: Arrival, how: "refused" | "failed" | "left"): void {
    this.#lost[priority] += 1;
    if (how !== "left" || state !== "admitted") return;
    this.#lateCount += 1;
    if (workMs < this.#world.patienceMs) this.#avoidablyLateCount += 1;
  }

  #drawPatienceMs(): number {
    const { patienceMs, impatient } = this.#world;
    if (impatient === undefined) return patienceMs;
    return this.#classes.next() < impatient.ratio ? impatient.patienceMs : patienceMs;
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
    this.#asked[priority] += 1;
    const { patience } = this.#world;
    const patienceMs = this.#drawPatienceMs();
    const user = users[Math.floor(this.#classes.next() * users.length)] ?? "";
    const statedMs = patience === "unstated" ? undefined : patienceMs;
    const askedMs = this.#calendar.nowMs;
    const arrival = new Arrival(this.#host, { priority, user, statedMs, askedMs });
    arrival.ticket = this.#protection.ask(arrival);
    if (arrival.state === "over") return;
    arrival.cancelPatience = this.#calendar.after(patienceMs, () => arrival.leave());
  }
}

/** The world that a request comes from. */
interface ArrivalHost {
  /** Whether work goes on for callers that have left. */
  readonly isWorkedOff: boolean;
  /** Those that a worker has begun. */
  readonly working: Set<Arrival>;
  /** Its work comes to the service. */
  admitted(arrival: Arrival): StationJob;
  served(arrival: Arrival): void;
  /** It was refused, it failed, or its caller left. */
  lost(arrival: Arrival, how: "refused" | "failed" | "left"): void;
}

interface ArrivalParts {
  readonly priority: Priority;
  readonly user: string;
  readonly statedMs: number | undefined;
  readonly askedMs: number;
}

/** One request: most of a run goes into them, so that each is one object. */
class Arrival implements GoodputCaller, StationCall {
  readonly priority: Priority;
  readonly user: string;
  readonly statedMs: number | undefined;
  readonly askedMs: number;
  readonly #host: ArrivalHost;
  state: "asking" | "admitted" | "over" = "asking";
  workMs = 0;
  ticket: GoodputTicket | undefined;
  cancelPatience: (() => void) | undefined;
  #job: StationJob | undefined;

  constructor(host: ArrivalHost, { priority, user, statedMs, askedMs }: ArrivalParts) {
    this.#host = host;
    this.priority = priority;
    this.user = user;
    this.statedMs = statedMs;
    this.askedMs = askedMs;
  }

  admit(): void {
    this.state = "admitted";
    this.#job = this.#host.admitted(this);
  }

  refuse(): void {
    this.#host.lost(this, "refused");
    this.#end();
  }

  started(): void {
    this.#host.working.add(this);
  }

  ended(): void {
    this.#host.working.delete(this);
    if (this.state === "over") return;
    this.#end();
    this.#host.served(this);
    this.ticket?.ended("served");
  }

  /** Its worker is lost. */
  fail(): void {
    this.#giveUp();
    if (this.state === "over") return;
    this.#host.lost(this, "failed");
    this.#end();
    this.ticket?.ended("failed");
  }

  /** Its caller's patience is over. */
  leave(): void {
    if (this.state === "over") return;
    this.#host.lost(this, "left");
    this.#end();
    if (!this.#host.isWorkedOff) this.#giveUp();
    this.ticket?.ended("left");
  }

  #giveUp(): void {
    this.#host.working.delete(this);
    this.#job?.leave();
  }

  #end(): void {
    this.state = "over";
    this.cancelPatience?.();
  }
}

const users = Array.from({ length: 500 }, (_, i) => `user-${i}`);

function zero(): Record<Priority, number> {
  return { critical: 0, high: 0, normal: 0, low: 0 };
}

/** A part of a bimodal service's requests takes this many times longer than the others. */
const slowRatio = 10;

const slowPart = 0.01;

/** Requests in the mean for which an autocorrelated service stays slow, or fast. */
const spellCount = 20;

/**
 * Work with the world's mean: exponential; always the same; one in a hundred ten times as long;
 * Pareto of shape 1.5, cut off at 100 times its least; or exponential in spells, in which all
 * takes 0.4 or 1.6 of the mean.
 */
function workDraw({ service = "exponential", serviceMs }: GoodputWorld, random: Random): DrawMs {
  switch (service) {
    case "exponential":
      return exponentialMs(random, serviceMs);
    case "fixed":
      return fixedMs(serviceMs);
    case "heavyTailed":
      return heavyTailedMs(random, { meanMs: serviceMs, cutRatio: 100 });
    case "bimodal": {
      const quickMs = serviceMs / (1 + slowPart * (slowRatio - 1));
      return () => (random.next() < slowPart ? slowRatio * quickMs : quickMs);
    }
    case "autocorrelated": {
      let ratio = 0.4;
      const unitMs = exponentialMs(random, serviceMs);
      return () => {
        if (random.next() * spellCount < 1) ratio = 2 - ratio;
        return ratio * unitMs();
      };
    }
  }
}
