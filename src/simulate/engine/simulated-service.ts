import type { Random } from "../../core/base/clock.js";
import type { EventCalendar } from "./calendar.js";
import type { DrawMs } from "./distributions.js";
import { WorkerGroup, type WorkerSettings } from "./worker-group.js";

interface SimulatedServiceParts {
  readonly name: string;
  readonly workers: number;
  readonly settings: WorkerSettings;
  readonly calendar: EventCalendar;
  /** Time that a worker takes, and its mean, in milliseconds. */
  readonly draw: DrawMs;
  readonly meanMs: number;
  readonly zoneCount: number;
  /** Whether requests stay in their zone if it has workers. */
  readonly isZoneLocal: boolean;
  /** Randomness for the choice of zones. */
  readonly random: Random;
}

/** A service, with a group of workers in each zone. */
export class SimulatedService {
  readonly name: string;
  readonly #parts: SimulatedServiceParts;
  readonly #groups: readonly WorkerGroup[];
  /** Number of requests that arrived, whatever their outcome. */
  arrivedCount = 0;

  constructor(parts: SimulatedServiceParts) {
    this.name = parts.name;
    this.#parts = parts;
    const { workers: allWorkers, zoneCount } = parts;
    this.#groups = Array.from({ length: zoneCount }, (_, zone) => {
      const workers = Math.floor((allWorkers + zoneCount - 1 - zone) / zoneCount);
      return new WorkerGroup({ ...parts, zone, workers, allWorkers });
    });
  }

  /** Whether it stops working for callers that have left. */
  get stopsAbandoned(): boolean {
    return this.#parts.settings.stopsAbandoned === "yes";
  }

  get queueCount(): number {
    return this.#sum(({ queueCount }) => queueCount);
  }

  get busyCount(): number {
    return this.#sum(({ busyCount }) => busyCount);
  }

  get workerCount(): number {
    return this.#sum(({ workerCount }) => workerCount);
  }

  /** Number of requests that it could have served until now, with the workers that it had. */
  get possibleCount(): number {
    return this.#sum(({ possibleCount }) => possibleCount);
  }

  /** Factor by which work takes longer. */
  set slowFactor(factor: number) {
    for (const group of this.#groups) group.slowFactor = factor;
  }

  /** Returns the workers for an Envoy's next request, in proportion to the workers of each zone. */
  groupFor(zone: number): WorkerGroup | undefined {
    this.arrivedCount += 1;
    const [first] = this.#groups;
    if (this.#groups.length === 1) return first;
    const own = this.#groups[zone];
    if (this.#parts.isZoneLocal && (own?.workerCount ?? 0) > 0) return own;
    let left = this.#parts.random.next() * this.workerCount;
    for (const group of this.#groups) {
      left -= group.workerCount;
      if (left < 0) return group;
    }
    return own;
  }

  /** Changes the number of workers in each zone; see `WorkerGroup.setWorkers`. */
  setWorkers(ratio: number, work: "finished" | "lost"): void {
    for (const group of this.#groups) group.setWorkers(ratio, work);
  }

  /** Takes a zone away, or brings it back. */
  setZoneLost(zone: number, isLost: boolean): void {
    this.#groups[zone]?.setLost(isLost);
  }

  /** Stops one of equal parts of the workers in each zone; see `WorkerGroup.stopPart`. */
  stopPart(partCount: number): void {
    for (const group of this.#groups) group.stopPart(partCount);
  }

  /** Starts that part again. */
  startPart(index: number, partCount: number): void {
    for (const group of this.#groups) group.startPart(index, partCount);
  }

  #sum(countOf: (group: WorkerGroup) => number): number {
    return this.#groups.reduce((sum, group) => sum + countOf(group), 0);
  }
}
