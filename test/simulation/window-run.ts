import type { ConcurrencyLimit } from "../../src/core/concurrency/concurrency-limit.js";
import { windowMargin } from "../../src/core/concurrency/window-limit.js";
import { EventCalendar } from "../../src/simulate/engine/calendar.js";
import { exponentialMs } from "../../src/simulate/engine/distributions.js";
import { Station } from "../../src/simulate/engine/station.js";
import { FakeRandom } from "../support/fake-random.js";
import { startArrivals } from "../support/station.js";

/** The overload of the OpenZiti text: one worker, a flood, callers who leave unseen. */
export interface WindowScenario {
  readonly law: ConcurrencyLimit;
  /** How long one piece of work takes, in the mean. */
  readonly serviceMs: number;
  /** By what part of it that differs, up and down, evenly. */
  readonly spreadRatio: number;
  /** How long a caller waits; whether it left shows when the answer is written. */
  readonly patienceMs: number;
  /** Requests that come, as a multiple of what can be served. */
  readonly loadRatio: number;
  readonly lengthMs: number;
  /** The first part, in which the window finds its size, is not counted. */
  readonly warmUpMs: number;
}

/** What became of it after the warm-up. */
export interface WindowReport {
  readonly completedCount: number;
  /** Of those that were worked on, how many for nobody. */
  readonly lateCount: number;
  readonly droppedAtHeadCount: number;
  readonly refusedCount: number;
  /** Mean, least and largest window at each completion. */
  readonly windowMean: number;
  readonly windowMin: number;
  readonly windowMax: number;
  /** Completed in time, as a share of what the worker could do. */
  readonly goodputRatio: number;
}

/** Runs it: the law's limit bounds the places in the queue, the one at work included. */
export function runWindow(scenario: WindowScenario, seed: number): WindowReport {
  const { law, serviceMs, spreadRatio, patienceMs, loadRatio, lengthMs, warmUpMs } = scenario;
  const random = new FakeRandom(seed);
  const calendar = new EventCalendar();
  const drawMs = (): number => serviceMs * (1 + spreadRatio * (2 * random.next() - 1));
  const station = new Station(calendar, 1, drawMs);
  const counts = { completed: 0, late: 0, droppedAtHead: 0, refused: 0 };
  const windows: number[] = [];
  const arrive = (): void => {
    const position = station.queueCount + station.busyCount + 1;
    const isCounted = calendar.nowMs >= warmUpMs;
    if (position > law.limit) {
      if (isCounted) counts.refused += 1;
      return;
    }
    const startMs = calendar.nowMs;
    station.enter({
      started: (job) => {
        if (position <= law.limit + windowMargin) return;
        if (isCounted) counts.droppedAtHead += 1;
        job.leave();
      },
      ended: () => {
        const endMs = calendar.nowMs;
        const outcome = endMs - startMs > patienceMs ? "dropped" : "success";
        law.record({ startMs, endMs, inFlight: position, position, outcome });
        if (endMs < warmUpMs) return;
        windows.push(law.limit);
        if (outcome === "success") counts.completed += 1;
        else counts.late += 1;
      },
    });
  };
  const gapMs = exponentialMs(random, serviceMs / loadRatio);
  startArrivals(calendar, { gapMs, untilMs: lengthMs }, arrive);
  calendar.runUntil(lengthMs);
  const windowMean = windows.reduce((sum, window) => sum + window, 0) / windows.length;
  return {
    completedCount: counts.completed,
    lateCount: counts.late,
    droppedAtHeadCount: counts.droppedAtHead,
    refusedCount: counts.refused,
    windowMean,
    windowMin: Math.min(...windows),
    windowMax: Math.max(...windows),
    goodputRatio: counts.completed / ((lengthMs - warmUpMs) / serviceMs),
  };
}
