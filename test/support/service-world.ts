import type { TimeDistribution } from "../../src/policy/scenario/scenario-times.js";
import type { TimedRequest } from "../../src/recommend/services/request-sweep.js";
import type { LoadWindow } from "../../src/recommend/services/service-observations.js";
import { EventCalendar } from "../../src/simulate/engine/calendar.js";
import { createDraw, exponentialMs, meanOf } from "../../src/simulate/engine/distributions.js";
import { randomStream } from "../../src/simulate/engine/seeded-random.js";
import { type ServiceCall, WorkerGroup } from "../../src/simulate/engine/worker-group.js";

/** A service whose workers and work are known. */
export interface ServiceWorld {
  readonly workers: number;
  readonly serviceTime: TimeDistribution;
  /** How many times as long work takes with all workers busy. Default 1. */
  readonly contention?: number;
  readonly seed: number;
}

/** A time with random arrivals at a ratio of the capacity. */
export interface LoadPhase {
  readonly loadRatio: number;
  readonly seconds: number;
}

/** What came of a run. */
export interface WorldRun {
  /** Requests that were served, in the order in which they ended. */
  readonly requests: readonly TimedRequest[];
  /** Requests a second that the workers could serve. */
  readonly capacity: number;
}

/** 2023-11-14, 22:13:20 UTC. */
const startUs = 1_700_000_000_000_000;

/** Runs a world; a request that would exceed `limit` in flight is refused. */
export function runWorld(
  { workers, serviceTime, contention = 1, seed }: ServiceWorld,
  phases: readonly LoadPhase[],
  limit = Number.POSITIVE_INFINITY,
): WorldRun {
  const calendar = new EventCalendar();
  const traces = new Map<string, readonly number[]>();
  const meanMs = meanOf(serviceTime, traces);
  const capacity = (workers * 1_000) / (meanMs * contention);
  const service = new WorkerGroup({
    zone: 0,
    workers,
    allWorkers: workers,
    settings: { queue: undefined, contention, warmUp: undefined, stopsAbandoned: "no" },
    calendar,
    draw: createDraw(serviceTime, { random: randomStream(seed, "service"), traces }),
    meanMs,
  });
  const requests: TimedRequest[] = [];
  let inFlight = 0;
  const enter = (): void => {
    if (inFlight >= limit) return;
    inFlight += 1;
    const atMs = calendar.nowMs;
    const call: ServiceCall = {
      started: () => service.noteStarted(call),
      ended: () => {
        service.noteEnded(call);
        inFlight -= 1;
        const durationUs = Math.round((calendar.nowMs - atMs) * 1_000);
        requests.push({ startUs: startUs + Math.round(atMs * 1_000), durationUs, isError: false });
      },
      lost: () => {},
    };
    service.enter(call);
  };
  const random = randomStream(seed, "arrivals");
  let endMs = 0;
  for (const { loadRatio, seconds } of phases) {
    const stopMs = endMs + seconds * 1_000;
    const gapMs = exponentialMs(random, 1_000 / (capacity * loadRatio));
    const arrive = (): void => {
      if (calendar.nowMs >= stopMs) return;
      enter();
      calendar.after(gapMs(), arrive);
    };
    calendar.after(gapMs(), arrive);
    calendar.runUntil(stopMs);
    endMs = stopMs;
  }
  // All that is still in flight ends.
  while (calendar.step(Number.POSITIVE_INFINITY)) {
    // Each round runs one event.
  }
  return { requests, capacity };
}

/** Requests as means of such a time, as a monitoring system has them. */
export function windowsOf(
  requests: readonly TimedRequest[],
  lengthMs: number,
): readonly LoadWindow[] {
  const sums = new Map<number, { count: number; latencyMs: number }>();
  for (const { startUs: fromUs, durationUs } of requests) {
    const index = Math.floor((fromUs + durationUs) / (lengthMs * 1_000));
    const sum = sums.get(index) ?? { count: 0, latencyMs: 0 };
    sums.set(index, sum);
    sum.count += 1;
    sum.latencyMs += durationUs / 1_000;
  }
  return [...sums].map(([index, { count, latencyMs }]) => ({
    startMs: index * lengthMs,
    lengthMs,
    perSecond: (1_000 * count) / lengthMs,
    latencyMs: latencyMs / count,
  }));
}
