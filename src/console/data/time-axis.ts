import { formatClock, formatTime } from "./format.js";

const minute = 60;
const hour = 3_600;
const day = 86_400;

/** Possible intervals of axis labels, in seconds: whole numbers, like the data. */
export const timeSteps: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 7, 14, 28, 91, 182, 364].map((count) => count * day),
];

/** Minimum time range of an axis. A single point is at its end. */
const spanSecondsMin = 10;

/** Returns the range of an axis for data of that time, in seconds since 1970. */
export function timeRange(from: number, to: number): [number, number] {
  return [Math.min(from, to - spanSecondsMin), to];
}

/**
 * Returns the labels of an axis at these seconds. Labels are unique, except times of different days
 * that have a date between them.
 */
export function formatTicks(seconds: readonly number[]): readonly string[] {
  const [first = 0, second = first + 1] = seconds;
  return seconds.map((one) => formatTick(one, second - first));
}

function formatTick(second: number, stepSeconds: number): string {
  const ms = second * 1_000;
  if (stepSeconds >= day) return formatTime(ms).slice(0, 10);
  if (second % day === 0 && stepSeconds >= hour) return formatTime(ms).slice(5, 10);
  return formatClock(ms).slice(0, stepSeconds < minute ? 8 : 5);
}
