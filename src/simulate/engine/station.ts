import type { EventCalendar } from "./calendar.js";
import type { DrawMs } from "./distributions.js";

/** Receives the progress of a job. */
export interface StationCall {
  /** Called when a server starts it. `job` may leave at once, if it is too late to be worth it. */
  started?(job: StationJob): void;
  /** Called when it has been served. */
  ended(): void;
}

/** A job at a station, from arrival to end. */
export interface StationJob {
  /**
   * Leaves the queue, or its server, which then starts the next job. Does nothing for a job that
   * has ended.
   */
  leave(): void;
}

/**
 * A station of c equal servers with one unbounded queue, first come first served. A new number of
 * servers applies to the next jobs: no job is removed from a server.
 */
export class Station {
  readonly #calendar: EventCalendar;
  readonly #serviceMs: DrawMs;
  /** Starts at `#queueStart`; truncated occasionally, so that leaving costs nothing. */
  #queue: PlacedJob[] = [];
  #queueStart = 0;
  #queueCount = 0;
  #busyCount = 0;
  #serverCount: number;
  /** Jobs that servers work on. */
  readonly #served = new Set<PlacedJob>();
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(calendar: EventCalendar, serverCount: number, serviceMs: DrawMs) {
    this.#calendar = calendar;
    this.#serverCount = serverCount;
    this.#serviceMs = serviceMs;
  }

  /** Number of jobs that wait for a server. */
  get queueCount(): number {
    return this.#queueCount;
  }

  get busyCount(): number {
    return this.#busyCount;
  }

  get serverCount(): number {
    return this.#serverCount;
  }

  set serverCount(count: number) {
    this.#serverCount = count;
    this.#takeUp();
  }

  /** Pauses all work for `lengthMs`, as garbage collection does. No job starts meanwhile. */
  pause(lengthMs: number): void {
    const { nowMs } = this.#calendar;
    const pausedMs = Math.max(0, this.#pausedUntilMs - nowMs);
    if (lengthMs <= pausedMs) return;
    this.#pausedUntilMs = nowMs + lengthMs;
    for (const job of this.#served) {
      job.cancelEnd?.();
      this.#endAt(job, job.endMs + lengthMs - pausedMs);
    }
    this.#calendar.after(lengthMs, () => this.#takeUp());
  }

  /**
   * Takes a job. `call.started` may be called at once.
   *
   * @param serviceMs service time; undefined: drawn when it starts
   */
  enter(call: StationCall, serviceMs?: number): StationJob {
    const job: PlacedJob = {
      call,
      serviceMs,
      state: "queued",
      cancelEnd: undefined,
      endMs: Number.NaN,
      leave: () => this.#leave(job),
    };
    this.#queue.push(job);
    this.#queueCount += 1;
    this.#takeUp();
    return job;
  }

  #takeUp(): void {
    if (this.#calendar.nowMs < this.#pausedUntilMs) return;
    while (this.#busyCount < this.#serverCount && this.#queueCount > 0) {
      const job = this.#shift();
      this.#queueCount -= 1;
      this.#busyCount += 1;
      job.state = "served";
      const serviceMs = job.serviceMs ?? this.#serviceMs();
      this.#served.add(job);
      this.#endAt(job, this.#calendar.nowMs + serviceMs);
      job.call.started?.(job);
    }
  }

  #endAt(job: PlacedJob, endMs: number): void {
    job.endMs = endMs;
    job.cancelEnd = this.#calendar.after(endMs - this.#calendar.nowMs, () => this.#end(job));
  }

  #shift(): PlacedJob {
    for (;;) {
      const job = this.#queue[this.#queueStart];
      if (job === undefined) throw new Error("the queue is shorter than its count");
      this.#queueStart += 1;
      if (this.#queueStart > 1_000 && this.#queueStart * 2 > this.#queue.length) {
        this.#queue = this.#queue.slice(this.#queueStart);
        this.#queueStart = 0;
      }
      if (job.state === "queued") return job;
    }
  }

  #end(job: PlacedJob): void {
    this.#busyCount -= 1;
    job.state = "gone";
    this.#served.delete(job);
    job.call.ended();
    this.#takeUp();
  }

  #leave(job: PlacedJob): void {
    const { state } = job;
    if (state === "gone") return;
    job.state = "gone";
    if (state === "queued") {
      this.#queueCount -= 1;
      return;
    }
    job.cancelEnd?.();
    this.#served.delete(job);
    this.#busyCount -= 1;
    this.#takeUp();
  }
}

interface PlacedJob extends StationJob {
  readonly call: StationCall;
  readonly serviceMs: number | undefined;
  state: "queued" | "served" | "gone";
  cancelEnd: (() => void) | undefined;
  /** Time at which it will be served, set when it starts. */
  endMs: number;
}
