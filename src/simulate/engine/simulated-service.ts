import type { ScenarioService } from "../../policy/scenario/scenario-events.js";
import type { EventCalendar } from "./calendar.js";
import type { DrawMs } from "./distributions.js";
import { Station, type StationCall, type StationJob } from "./station.js";

/** A request at a service. */
export interface ServiceCall extends StationCall {
  /** Its worker is lost. */
  lost(): void;
}

interface SimulatedServiceParts {
  readonly name: string;
  readonly workers: number;
  readonly settings: Pick<ScenarioService, "queue" | "contention" | "warmUp" | "stopsAbandoned">;
  readonly calendar: EventCalendar;
  /** How long a worker takes, and the mean of it, in milliseconds. */
  readonly draw: DrawMs;
  readonly meanMs: number;
}

/** A service with workers behind one queue, whose pace may change. */
export class SimulatedService {
  readonly name: string;
  readonly #parts: SimulatedServiceParts;
  readonly #station: Station;
  /** Requests that a worker has begun. */
  readonly #working = new Set<ServiceCall>();
  #slowFactor = 1;
  #possibleCount = 0;
  #possibleSinceMs = 0;
  /** Requests that came here, whatever became of them. */
  arrivedCount = 0;

  constructor(parts: SimulatedServiceParts) {
    this.name = parts.name;
    this.#parts = parts;
    this.#station = new Station(parts.calendar, parts.workers, () => this.#workMs());
  }

  /** Whether work for callers that have left is given up. */
  get stopsAbandoned(): boolean {
    return this.#parts.settings.stopsAbandoned === "yes";
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

  /** Requests that it could have served until now, with the workers that there were. */
  get possibleCount(): number {
    this.#account();
    return this.#possibleCount;
  }

  /** How many times as long work takes. */
  set slowFactor(factor: number) {
    this.#account();
    this.#slowFactor = factor;
  }

  /** Takes a request; undefined where its queue is full. */
  enter(call: ServiceCall): StationJob | undefined {
    this.arrivedCount += 1;
    const { queue } = this.#parts.settings;
    const { queueCount, busyCount, serverCount } = this.#station;
    if (queue !== undefined && busyCount >= serverCount && queueCount >= queue) return undefined;
    return this.#station.enter(call);
  }

  /** A worker has begun a request, or is done with it. */
  noteStarted(call: ServiceCall): void {
    this.#working.add(call);
  }

  noteEnded(call: ServiceCall): void {
    this.#working.delete(call);
  }

  /**
   * Changes the number of workers, as a multiple of those at the start.
   *
   * @param work what happens to requests at workers that are lost
   */
  setWorkers(ratio: number, work: "finished" | "lost"): void {
    const count = Math.round(this.#parts.workers * ratio);
    if (work === "lost") {
      const lost = [...this.#working].slice(count);
      for (const call of lost) call.lost();
    }
    this.#account();
    this.#station.serverCount = count;
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
    // The one that begins is busy already.
    const others = workers === 1 ? 1 : (this.busyCount - 1) / (workers - 1);
    const contention = 1 + (settings.contention - 1) * Math.min(1, others);
    return draw() * this.#slowFactor * contention * this.#coldFactor();
  }

  #coldFactor(): number {
    const { warmUp } = this.#parts.settings;
    if (warmUp?.for === undefined) return 1;
    const cold = Math.max(0, 1 - this.#parts.calendar.nowMs / warmUp.for);
    return 1 + (warmUp.factor - 1) * cold;
  }
}
