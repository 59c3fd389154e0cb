import { FleetRun, type FleetScenario, type ServiceSecond } from "./fleet-loop-run.js";

/** Seconds after a dip in which shares grow back and the queue with them. */
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

/** Places of the seconds in a dip, or right after one: the limit lies far below the usual one. */
export function lowSeconds(seconds: readonly ServiceSecond[]): ReadonlySet<number> {
  const middle = median(seconds.map(({ limit }) => limit));
  const low = new Set<number>();
  seconds.forEach(({ limit }, i) => {
    if (limit >= 0.75 * middle) return;
    for (let after = 0; after <= recoverySeconds; after += 1) low.add(i + after);
  });
  return low;
}

/** The mean; NaN of nothing. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The value in the middle; NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
