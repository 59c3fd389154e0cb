import type { ScenarioService } from "../../policy/scenario/scenario-events.js";
import type { EventCalendar } from "./calendar.js";
import type { DrawMs } from "./distributions.js";
import { Station, type StationCall, type StationJob } from "./station.js";

/** A request at a service. */
export interface ServiceCall extends StationCall {
  /** Called when its worker is lost. */
  lost(): void;
}

/** Settings of a scenario's service for its workers. */
export type WorkerSettings = Pick<
  ScenarioService,
  "queue" | "contention" | "warmUp" | "stopsAbandoned"
>;

interface GroupParts {
  readonly zone: number;
  /** Workers at the start, in this group and in all groups. */
  readonly workers: number;
  readonly allWorkers: number;
  readonly settings: WorkerSettings;
  readonly calendar: EventCalendar;
  /** Time that a worker takes, and its mean, in milliseconds. */
  readonly draw: DrawMs;
  readonly meanMs: number;
}

/** The workers of a service in one zone, behind one queue. Their pace may change. */
export class WorkerGroup {
  readonly zone: number;
  readonly #parts: GroupParts;
  readonly #station: Station;
  readonly #queued = new Set<ServiceCall>();
  readonly #working = new Set<ServiceCall>();
  #ratio = 1;
  #isLost = false;
  #restartingRatio = 0;
  #slowFactor = 1;
  /** Start times of equal parts of the workers. */
  #startedMs: number[] = [0];
  #possibleCount = 0;
  #possibleSinceMs = 0;

  constructor(parts: GroupParts) {
    this.zone = parts.zone;
    this.#parts = parts;
    this.#station = new Station(parts.calendar, parts.workers, () => this.#workMs());
  }

  get queueCount(): number {
    return this.#station.queueCount;
  }

  get busyCount(): number {
    return this.#station.busyCount;
  }

  get workerCount(): number {
    return this.#station.serverCount;
  }

  /** Number of requests that it could have served until now, with the workers that it had. */
  get possibleCount(): number {
    this.#account();
    return this.#possibleCount;
  }

  /** Factor by which work takes longer. */
  set slowFactor(factor: number) {
    this.#account();
    this.#slowFactor = factor;
  }

  /** Takes a request; undefined if its queue is full. */
  enter(call: ServiceCall): StationJob | undefined {
    const { queueCount, busyCount, serverCount } = this.#station;
    if (busyCount >= serverCount && queueCount >= this.#queueMax) return undefined;
    this.#queued.add(call);
    return this.#station.enter(call);
  }

  /** Registers that a worker has started a request. */
  noteStarted(call: ServiceCall): void {
    this.#queued.delete(call);
    this.#working.add(call);
  }

  /** Registers that a worker has finished a request, or that the request left. */
  noteEnded(call: ServiceCall): void {
    this.#queued.delete(call);
    this.#working.delete(call);
  }

  /**
   * Changes the number of workers, as a multiple of the number at the start.
   *
   * @param work what happens to the requests of lost workers
   */
  setWorkers(ratio: number, work: "finished" | "lost"): void {
    this.#ratio = ratio;
    // Applied first, so that none of the lost workers starts another request.
    this.#apply();
    if (work === "finished") return;
    for (const call of [...this.#working].slice(this.workerCount)) call.lost();
  }

  /** Loses its zone and all requests, or comes back with workers that have just started. */
  setLost(isLost: boolean): void {
    this.#isLost = isLost;
    this.#apply();
    if (!isLost) this.#startedMs = [this.#parts.calendar.nowMs];
    else for (const call of [...this.#working, ...this.#queued]) call.lost();
  }

  /** Stops one of equal parts of the workers, which finishes its work and takes nothing more. */
  stopPart(partCount: number): void {
    this.#restartingRatio = 1 / partCount;
    this.#apply();
  }

  /** Starts that part again. */
  startPart(index: number, partCount: number): void {
    const oldest = Math.min(...this.#startedMs);
    if (this.#startedMs.length !== partCount) {
      this.#startedMs = new Array<number>(partCount).fill(oldest);
    }
    this.#startedMs[index] = this.#parts.calendar.nowMs;
    this.#restartingRatio = 0;
    this.#apply();
  }

  get #countNow(): number {
    if (this.#isLost) return 0;
    return Math.round(this.#parts.workers * this.#ratio * (1 - this.#restartingRatio));
  }

  /** Its part of the service's queue, in proportion to its workers. */
  get #queueMax(): number {
    const { settings, workers, allWorkers } = this.#parts;
    if (settings.queue === undefined) return Number.POSITIVE_INFINITY;
    return Math.ceil((settings.queue * workers) / allWorkers);
  }

  #apply(): void {
    this.#account();
    this.#station.serverCount = this.#countNow;
  }

  #account(): void {
    const { meanMs, settings, calendar } = this.#parts;
    const workMs = meanMs * this.#slowFactor * settings.contention * this.#coldFactor();
    const { nowMs } = calendar;
    this.#possibleCount += (this.workerCount * (nowMs - this.#possibleSinceMs)) / workMs;
    this.#possibleSinceMs = nowMs;
  }

  #workMs(): number {
    const { draw, settings, workers } = this.#parts;
    // The worker that starts is already counted as busy.
    const others = workers <= 1 ? 1 : (this.busyCount - 1) / (workers - 1);
    const contention = 1 + (settings.contention - 1) * Math.min(1, others);
    return draw() * this.#slowFactor * contention * this.#coldFactor();
  }

  /** Returns the mean over all parts of the workers. */
  #coldFactor(): number {
    const { settings, calendar } = this.#parts;
    const { warmUp } = settings;
    if (warmUp?.for === undefined) return 1;
    let cold = 0;
    for (const startedMs of this.#startedMs) {
      cold += Math.max(0, 1 - (calendar.nowMs - startedMs) / warmUp.for);
    }
    return 1 + ((warmUp.factor - 1) * cold) / this.#startedMs.length;
  }
}
