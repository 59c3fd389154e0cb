import type { Cancel, Clock } from "../../core/base/clock.js";
import { LinkedList, type ListNode } from "../../core/collections/linked-list.js";
import type { ServiceCounts } from "./layers-counts.js";
import { workerCount } from "./layers-settings.js";

/** End of a request at the workers: served, or lost because its worker died. */
export type WorkEnd = "done" | "lost";

/** A request at the workers. */
export interface WorkTicket {
  /** Registers that its caller has left. The work continues without a recipient. */
  callerLeft(): void;
  /** Removes it from the queue, or from its worker. */
  stop(): void;
}

interface Job {
  readonly workMs: number;
  readonly arrivedMs: number;
  readonly ended: (end: WorkEnd) => void;
  hasCallerLeft: boolean;
  /** Undefined after it has left the queue. */
  place: ListNode<Job> | undefined;
}

interface Worker {
  isAlive: boolean;
  /** Time at which its last work ends or has ended. */
  freeAtMs: number;
  job: Job | undefined;
  cancelEnd: Cancel;
}

/**
 * Workers behind one unbounded queue, first come first served. They keep ideal times: a late timer
 * delays a response, but never the next work, so that their capacity is known.
 */
export class LayersWorkers {
  /** Whether work for callers that have left is skipped. */
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

  /** Number of requests that wait for a worker. */
  get queueCount(): number {
    return this.#queue.count;
  }

  /** @param ended called once, unless it is stopped; possibly before this function returns */
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

  /** Sets whether work for callers that have left is skipped from now on. */
  set skipsLeft(skips: boolean) {
    this.#skipsLeft = skips;
    this.#work();
  }

  /** Kills workers with their requests, or restores them. @param ratio part of workers alive */
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

  /** Assigns requests to idle workers. */
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

  /** Returns the worker that has been idle for the longest time. */
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

  /** Stops a worker's unfinished work. */
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
