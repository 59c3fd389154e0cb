import type { Clock } from "../../core/base/clock.js";

/** Work of one stream that is done part by part. */
export interface TurnJob {
  /** How much of it is left, in reports; 0 if it is done or no longer needed. */
  readonly leftCount: number;
  /** Does the next part. @returns its cost in units */
  step(): number;
}

/** Work per turn of the event loop, in units of about 2.5 us: 2 ms, and at most one part more. */
export const unitsPerTurn = 800;

/**
 * Maximum number of reports that wait, about 100 bytes each. A job beyond it is done at once, which
 * delays other work and loses nothing.
 */
export const waitingReportsMax = 1_000_000;

/**
 * Divides the work of all streams into turns of the event loop. A stream has at most one job at a
 * time, so its messages keep their order.
 */
export class TurnQueue {
  readonly #clock: Pick<Clock, "scheduleTurn">;
  readonly #jobs = new Set<TurnJob>();
  #waitingCount = 0;
  #units = 0;
  #isScheduled = false;

  constructor(clock: Pick<Clock, "scheduleTurn">) {
    this.#clock = clock;
  }

  /** Does as much of a job as the current turn has room for, and the rest in the next turns. */
  add(job: TurnJob): void {
    const hasRoom = this.#waitingCount + job.leftCount <= waitingReportsMax;
    if (this.#jobs.size === 0 || !hasRoom) this.#work(job, hasRoom ? unitsPerTurn : Infinity);
    if (job.leftCount > 0) {
      this.#jobs.add(job);
      this.#waitingCount += job.leftCount;
    }
    this.#schedule();
  }

  #work(job: TurnJob, unitsMax: number): void {
    while (job.leftCount > 0 && this.#units < unitsMax) this.#units += job.step();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#clock.scheduleTurn(() => this.#takeTurn());
  }

  #takeTurn(): void {
    this.#isScheduled = false;
    this.#units = 0;
    for (const job of this.#jobs) {
      if (this.#units >= unitsPerTurn) break;
      this.#work(job, unitsPerTurn);
      if (job.leftCount === 0) this.#jobs.delete(job);
    }
    this.#waitingCount = 0;
    for (const { leftCount } of this.#jobs) this.#waitingCount += leftCount;
    if (this.#jobs.size > 0) this.#schedule();
  }
}
