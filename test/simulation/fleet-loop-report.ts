import { mean } from "../support/station.js";
import { FleetRun, type FleetScenario, type ServiceSecond } from "./fleet-loop-run.js";

/** Seconds after a probe in which shares grow back and the queue with them. */
const recoverySeconds = 5;

/** Runs one seed. @returns what may not happen and did, in words; nothing where nothing did */
export function runFleet(
  scenario: FleetScenario,
  { seed, seconds }: { readonly seed: number; readonly seconds: number },
): string {
  const run = new FleetRun(scenario, seed);
  run.span(seconds);
  return run.violations.join("\n");
}

/** What was seen of a service over some time. */
export interface SteadySpan {
  readonly seconds: readonly ServiceSecond[];
  /** Those of them that are in no probe, and not right after one. */
  readonly steady: readonly ServiceSecond[];
  /** The farthest that the limit came from its mean in those, as a part of it. */
  readonly swingRatio: number;
}

/** Looks at the last `count` seconds of a service; a probe may have been before them. */
export function steadySpan(all: readonly ServiceSecond[], count: number): SteadySpan {
  const low = lowPlaces(all);
  const from = all.length - count;
  const steady = all.filter((_, i) => i >= from && !low.has(i));
  const middle = mean(steady.map(({ limit }) => limit));
  const farthest = steady.map(({ limit }) => Math.abs(limit / middle - 1));
  return { seconds: all.slice(from), steady, swingRatio: Math.max(...farthest) };
}

/** Places of the seconds in a probe, or right after one: the limit lies far below the usual one. */
function lowPlaces(seconds: readonly ServiceSecond[]): ReadonlySet<number> {
  const middle = median(seconds.map(({ limit }) => limit));
  const low = new Set<number>();
  seconds.forEach(({ limit }, i) => {
    if (limit >= 0.75 * middle) return;
    for (let after = 0; after <= recoverySeconds; after += 1) low.add(i + after);
  });
  return low;
}

/** The value in the middle; NaN of nothing. */
function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
