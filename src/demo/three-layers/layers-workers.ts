import type { Cancel, Clock } from "../../core/base/clock.js";
import { LinkedList, type ListNode } from "../../core/collections/linked-list.js";
import type { ServiceCounts } from "./layers-counts.js";
import { workerCount } from "./layers-settings.js";

/** How a request at the workers ended: served, or its worker died under it. */
export type WorkEnd = "done" | "lost";

/** A request at the workers. */
export interface WorkTicket {
  /** Its caller has left; the work goes on, for nobody. */
  callerLeft(): void;
  /** Takes it out of the queue, or off its worker. */
  stop(): void;
}

interface Job {
  readonly workMs: number;
  readonly arrivedMs: number;
  readonly ended: (end: WorkEnd) => void;
  hasCallerLeft: boolean;
  /** Undefined once it is out of the queue. */
  place: ListNode<Job> | undefined;
}

interface Worker {
  isAlive: boolean;
  /** When it has done, or did, its last work. */
  freeAtMs: number;
  job: Job | undefined;
  cancelEnd: Cancel;
}

/**
 * Workers behind one queue without end, first come first served. They keep an ideal time: a timer
 * that comes late delays an answer, and never the work behind it, so that their capacity is known.
 */
export class LayersWorkers {
  /** Whether work for callers that have left is not begun. */
  #skipsLeft = false;
  readonly #clock: Clock;
  readonly #queue = new LinkedList<Job>();
  readonly #workers: readonly Worker[];
  #arrived = 0;
  #busyMs = 0;
  #wastedMs = 0;
  #capacityMs = 0;
  #capacitySinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    const freeAtMs = clock.monotonicMs();
    this.#capacitySinceMs = freeAtMs;
    const cancelEnd = (): void => {};
    this.#workers = Array.from({ length: workerCount }, () => {
      return { isAlive: true, freeAtMs, job: undefined, cancelEnd };
    });
  }

  get counts(): ServiceCounts {
    this.#account();
    const [arrived, busyMs, wastedMs] = [this.#arrived, this.#busyMs, this.#wastedMs];
    return { arrived, busyMs, wastedMs, capacityMs: this.#capacityMs };
  }

  /** Requests that wait for a worker. */
  get queueCount(): number {
    return this.#queue.count;
  }

  /** @param ended told once, unless it is stopped; maybe not before it is gone */
  enter(workMs: number, ended: (end: WorkEnd) => void): WorkTicket {
    const job: Job = {
      workMs,
      arrivedMs: this.#clock.monotonicMs(),
      ended,
      hasCallerLeft: false,
      place: undefined,
    };
    this.#arrived += 1;
    job.place = this.#queue.push(job);
    this.#work();
    return {
      callerLeft: () => {
        job.hasCallerLeft = true;
      },
      stop: () => this.#stop(job),
    };
  }

  /** From now on, work for callers that have left is not begun, or it is. */
  set skipsLeft(skips: boolean) {
    this.#skipsLeft = skips;
    this.#work();
  }

  /** Some die, with what they work on, or all of a part are back. @param ratio those that live */
  setRatio(ratio: number): void {
    this.#account();
    const aliveCount = Math.round(workerCount * ratio);
    const lost: Job[] = [];
    for (const [place, worker] of this.#workers.entries()) {
      const isAlive = place < aliveCount;
      if (isAlive === worker.isAlive) continue;
      worker.isAlive = isAlive;
      if (worker.job !== undefined) lost.push(this.#release(worker, worker.job));
      worker.freeAtMs = this.#clock.monotonicMs();
    }
    for (const job of lost) job.ended("lost");
    this.#work();
  }

  /** Gives requests to workers, as far as there are workers. */
  #work(): void {
    for (let first = this.#queue.oldest; first !== undefined; first = this.#queue.oldest) {
      const worker = this.#idleWorker();
      if (worker === undefined) return;
      const job = first.value;
      this.#leaveQueue(job);
      if (this.#skipsLeft && job.hasCallerLeft) continue;
      worker.job = job;
      worker.freeAtMs = Math.max(job.arrivedMs, worker.freeAtMs) + job.workMs;
      const waitMs = Math.max(0, worker.freeAtMs - this.#clock.monotonicMs());
      worker.cancelEnd = this.#clock.schedule(waitMs, () => this.#finish(worker, job));
    }
  }

  /** The one that has been free for longest. */
  #idleWorker(): Worker | undefined {
    let idle: Worker | undefined;
    for (const worker of this.#workers) {
      if (!worker.isAlive || worker.job !== undefined) continue;
      if (idle === undefined || worker.freeAtMs < idle.freeAtMs) idle = worker;
    }
    return idle;
  }

  #finish(worker: Worker, job: Job): void {
    worker.job = undefined;
    this.#busyMs += job.workMs;
    if (job.hasCallerLeft) this.#wastedMs += job.workMs;
    job.ended("done");
    this.#work();
  }

  #stop(job: Job): void {
    this.#leaveQueue(job);
    const worker = this.#workers.find((one) => one.job === job);
    job.hasCallerLeft = true;
    if (worker !== undefined) this.#release(worker, job);
    this.#work();
  }

  #leaveQueue(job: Job): void {
    if (job.place !== undefined) this.#queue.remove(job.place);
    job.place = undefined;
  }

  /** The worker lets go of unfinished work. */
  #release(worker: Worker, job: Job): Job {
    worker.cancelEnd();
    worker.job = undefined;
    const nowMs = this.#clock.monotonicMs();
    const doneMs = Math.min(job.workMs, Math.max(0, nowMs - (worker.freeAtMs - job.workMs)));
    worker.freeAtMs = nowMs;
    this.#busyMs += doneMs;
    if (job.hasCallerLeft) this.#wastedMs += doneMs;
    return job;
  }

  #account(): void {
    const nowMs = this.#clock.monotonicMs();
    const aliveCount = this.#workers.filter(({ isAlive }) => isAlive).length;
    this.#capacityMs += aliveCount * (nowMs - this.#capacitySinceMs);
    this.#capacitySinceMs = nowMs;
  }
}
