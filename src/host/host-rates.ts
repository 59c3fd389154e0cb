import type { HostReadings } from "../core/admission/host-reading.js";
import type { HostSample } from "./host-reader.js";

/**
 * Computes the readings between two samples. A counter that went back, or that is in only one of
 * the samples, gives no reading.
 *
 * - cpu: `used / (elapsed x cpusMax)`, the largest of the cgroups that have a limit; without one
 *   `busy / (busy + idle)` of the host
 * - throttling: `throttled periods / periods`, the largest
 * - pressure: `waited / elapsed`
 *
 * Example: 600 ms of CPU time in 1,000 ms with a limit of 1.5 CPUs: 0.4.
 *
 * @param elapsedMs monotonic time between the samples; at 0 or below, no rate is known
 */
export function hostRates(
  before: HostSample,
  after: HostSample,
  elapsedMs: number,
): Omit<HostReadings, "runQueue" | "eventLoopDelay"> {
  const elapsedUs = elapsedMs * 1_000;
  const { cpuPressure, memoryPressure, ticks } = before;
  const waited = (from: number | undefined, to: number | undefined): number | undefined =>
    ratio(grown(from, to), elapsedUs);
  const groups = after.limitedCpu.map((group) => {
    const known = before.limitedCpu.find(({ folder }) => folder === group.folder);
    const periods = grown(known?.periodsCount, group.periodsCount);
    return {
      cpu: ratio(grown(known?.usedUs, group.usedUs), elapsedUs * group.cpusMax),
      // While nothing runs there are no periods, and nothing is throttled.
      cpuThrottling:
        periods === 0 ? 0 : ratio(grown(known?.throttledCount, group.throttledCount), periods),
    };
  });
  return {
    cpu:
      largest(groups.map(({ cpu }) => cpu)) ??
      ratio(
        grown(ticks?.busyTicks, after.ticks?.busyTicks),
        grown(ticks?.totalTicks, after.ticks?.totalTicks),
      ),
    cpuThrottling: largest(groups.map(({ cpuThrottling }) => cpuThrottling)),
    cpuPressure: waited(cpuPressure?.someUs, after.cpuPressure?.someUs),
    memory: after.memoryRatio,
    memoryPressure: waited(memoryPressure?.someUs, after.memoryPressure?.someUs),
    memoryStall: waited(memoryPressure?.fullUs, after.memoryPressure?.fullUs),
  };
}

function grown(from: number | undefined, to: number | undefined): number | undefined {
  return from === undefined || to === undefined || to < from ? undefined : to - from;
}

/** At most 1: the two values come from two clocks, and a limit may be exceeded for a moment. */
function ratio(part: number | undefined, whole: number | undefined): number | undefined {
  return part === undefined || !(Number(whole) > 0) ? undefined : Math.min(1, part / Number(whole));
}

function largest(ratios: readonly (number | undefined)[]): number | undefined {
  const known = ratios.filter((one) => one !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
