import { formatClock, formatTime } from "./format.js";

const minute = 60;
const hour = 3_600;
const day = 86_400;

/** Seconds that labels of a time axis may be apart: whole ones, since data is by seconds. */
export const timeSteps: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 7, 14, 28, 91, 182, 364].map((count) => count * day),
];

/** An axis shows at least so much; a single point stands at its end. */
const spanSecondsMin = 10;

/** From where to where an axis goes for data of that time, in seconds since 1970. */
export function timeRange(from: number, to: number): [number, number] {
  return [Math.min(from, to - spanSecondsMin), to];
}

/**
 * Labels of an axis at these seconds. No two are the same, but of days whose dates stand between
 * them.
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
