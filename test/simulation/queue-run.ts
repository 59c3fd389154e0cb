import {
  type EstimatedWaitSettings,
  isOverWaitCap,
  type QueueState,
  sigmoidRejectRatio,
} from "../../src/core/admission/estimated-wait.js";
import { Gate, type GateSettings, type GateState } from "../../src/core/admission/gate.js";
import {
  type Priority,
  priorities,
  type ShedThresholds,
  sheds,
} from "../../src/core/admission/priority.js";
import type { RefusalCause } from "../../src/core/admission/refusal.js";
import {
  type QueuePlace,
  type QueueRefusal,
  type QueueSettings,
  RequestQueue,
} from "../../src/core/admission/request-queue.js";
import { ServiceTime } from "../../src/core/concurrency/service-time.js";
import { EventCalendar } from "../../src/simulate/engine/calendar.js";
import { burstyMs, type DrawMs, exponentialMs } from "../../src/simulate/engine/distributions.js";
import { FakeRandom } from "../support/fake-random.js";
import { startArrivals } from "../support/station.js";
import { heavyTailedMs } from "./heavy-tailed.js";

/** A service with as many permits as servers, the laws in front of it, and who comes. */
export interface QueueScenario {
  readonly serverCount: number;
  /** Mean of exponential service times. */
  readonly serviceMs: number;
  readonly arrivalsPerSecond: number;
  readonly arrivals: "poisson" | "bursty" | "heavyTailed";
  /** Share of each class; what is missing is normal. */
  readonly classRatios: Readonly<Partial<Record<Priority, number>>>;
  readonly queue: QueueSettings;
  readonly estimatedWait: EstimatedWaitSettings | undefined;
  readonly gate: GateSettings | undefined;
  readonly shedAt: ShedThresholds | undefined;
}

/** What became of the requests of a class. */
export interface ClassCounts {
  arrivedCount: number;
  /** How long each one that was let in had waited, in milliseconds, in the order of letting in. */
  readonly waitsMs: number[];
  readonly refusedByCause: Map<RefusalCause, number>;
}

/** How often the gate is told the queue's state, and the queue is looked at. */
const tickMs = 1_000;

/** A scenario that runs. */
export class QueueRun {
  readonly classes: Readonly<Record<Priority, ClassCounts>> = {
    critical: emptyCounts(),
    high: emptyCounts(),
    normal: emptyCounts(),
    low: emptyCounts(),
  };
  /** How many wait, at each full second. */
  readonly queueCounts: number[] = [];
  readonly gate: Gate | undefined;
  /** The gate's states at each full second. */
  readonly gateStates: GateState[] = [];
  /** Critical requests that were refused although somebody of a lower class waited. */
  wronglyRefusedCount = 0;
  readonly #scenario: QueueScenario;
  readonly #calendar = new EventCalendar();
  readonly #random: FakeRandom;
  readonly #serviceMs: DrawMs;
  readonly #room: RequestQueue<undefined>;
  readonly #slotTime = new ServiceTime();
  #inFlightCount = 0;

  constructor(scenario: QueueScenario, seed: number) {
    this.#scenario = scenario;
    this.#random = new FakeRandom(seed);
    this.#serviceMs = exponentialMs(this.#random, scenario.serviceMs);
    this.#room = new RequestQueue(scenario.queue);
    this.gate = scenario.gate && new Gate(scenario.gate);
    const gapMs = gapDraw(scenario, this.#random);
    const untilMs = Number.POSITIVE_INFINITY;
    startArrivals(this.#calendar, { gapMs, untilMs }, () => this.#arrive());
    this.#calendar.every(tickMs, () => this.#tick());
  }

  /** Lives on for that long. */
  span(seconds: number): void {
    this.#calendar.runUntil(this.#calendar.nowMs + seconds * 1_000);
  }

  /** Forgets what was counted, so that what the run began with does not count. */
  forget(): void {
    this.queueCounts.length = 0;
    this.gateStates.length = 0;
    for (const counts of Object.values(this.classes)) {
      counts.arrivedCount = 0;
      counts.waitsMs.length = 0;
      counts.refusedByCause.clear();
    }
  }

  #state(): QueueState {
    return {
      waitingCount: this.#room.waitingCount,
      inFlightCount: this.#inFlightCount,
      limit: this.#scenario.serverCount,
      serviceMs: this.#slotTime.serviceMs(this.#calendar.nowMs),
    };
  }

  #tick(): void {
    this.queueCounts.push(this.#room.waitingCount);
    const { estimatedWait } = this.#scenario;
    if (estimatedWait?.sigmoid === undefined) return;
    if (this.gate === undefined) return;
    this.gate.update(sigmoidRejectRatio(estimatedWait.sigmoid, this.#state()));
    this.gateStates.push(this.gate.state);
  }

  #arrive(): void {
    const priority = this.#drawClass();
    this.classes[priority].arrivedCount += 1;
    const cause = this.#refusal(priority);
    if (cause !== undefined) this.#refused(priority, cause);
    else if (this.#room.waitingCount === 0 && this.#hasPermit()) this.#begin(priority, 0);
    else this.#wait(priority);
  }

  #refusal(priority: Priority): RefusalCause | undefined {
    const { estimatedWait, shedAt, serverCount, queue } = this.#scenario;
    const isSpared = priority === "critical";
    if (!isSpared && this.gate?.passes(this.#random.next()) === false) return "gate";
    if (!isSpared && estimatedWait !== undefined) {
      const state = this.#state();
      if (isOverWaitCap(estimatedWait, state)) return "waitCap";
      const { sigmoid } = estimatedWait;
      if (sigmoid !== undefined && this.#random.next() < sigmoidRejectRatio(sigmoid, state)) {
        return "sigmoid";
      }
    }
    if (shedAt === undefined) return undefined;
    const presentCount = this.#inFlightCount + this.#room.waitingCount;
    const loadRatio = presentCount / (serverCount + queue.sizeMax);
    const callerHashRatio = this.#random.next();
    // A full queue is the request queue's to decide on for who may displace others.
    if (isSpared && loadRatio >= 1) return undefined;
    return sheds(shedAt, { priority, loadRatio, callerHashRatio }) ? "priority" : undefined;
  }

  #wait(priority: Priority): void {
    const newcomer = { payload: undefined, priority, remainingMs: undefined };
    const { place, dismissed } = this.#room.enter(newcomer, this.#calendar.nowMs);
    this.#dismiss(dismissed);
    if (place === undefined) this.#refused(priority, "queueFull");
    else this.#expireAt(place);
  }

  #expireAt({ expiresMs }: QueuePlace<undefined>): void {
    if (expiresMs === Number.POSITIVE_INFINITY) return;
    this.#calendar.after(expiresMs - this.#calendar.nowMs, () => {
      this.#dismiss(this.#room.expire(this.#calendar.nowMs));
    });
  }

  #begin(priority: Priority, waitMs: number): void {
    this.classes[priority].waitsMs.push(waitMs);
    this.#inFlightCount += 1;
    this.#slotTime.occupy(this.#inFlightCount, this.#calendar.nowMs);
    this.#calendar.after(this.#serviceMs(), () => this.#end());
  }

  #end(): void {
    const { nowMs } = this.#calendar;
    this.#inFlightCount -= 1;
    this.#slotTime.complete(nowMs);
    this.#slotTime.occupy(this.#inFlightCount, nowMs);
    while (this.#hasPermit()) {
      const { place, dismissed } = this.#room.next(nowMs, Number.POSITIVE_INFINITY);
      this.#dismiss(dismissed);
      if (place === undefined) return;
      this.#begin(place.priority, nowMs - place.enteredMs);
    }
  }

  #hasPermit(): boolean {
    return this.#inFlightCount < this.#scenario.serverCount;
  }

  #dismiss(dismissed: readonly QueueRefusal<undefined>[]): void {
    for (const { place, cause } of dismissed) this.#refused(place.priority, cause);
  }

  #refused(priority: Priority, cause: RefusalCause): void {
    const { refusedByCause } = this.classes[priority];
    const isHighest = priority === "critical";
    if (isHighest && this.#room.countOf(priority) < this.#room.waitingCount) {
      this.wronglyRefusedCount += 1;
    }
    refusedByCause.set(cause, (refusedByCause.get(cause) ?? 0) + 1);
  }

  #drawClass(): Priority {
    let rest = this.#random.next();
    for (const priority of priorities) {
      rest -= this.#scenario.classRatios[priority] ?? 0;
      if (rest < 0) return priority;
    }
    return "normal";
  }
}

/** How many of a class were refused. */
export function refusedCount({ refusedByCause }: ClassCounts): number {
  return [...refusedByCause.values()].reduce((sum, count) => sum + count, 0);
}

function emptyCounts(): ClassCounts {
  return { arrivedCount: 0, waitsMs: [], refusedByCause: new Map() };
}

function gapDraw({ arrivals, arrivalsPerSecond }: QueueScenario, random: FakeRandom): DrawMs {
  const meanMs = 1_000 / arrivalsPerSecond;
  if (arrivals === "bursty") return burstyMs(random, { meanMs, burstCount: 20 });
  if (arrivals === "heavyTailed") return heavyTailedMs(random, { meanMs });
  return exponentialMs(random, meanMs);
}
