/**
 * Round numbers of hits, as a person would write them: 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100
 * and so on. Each is at most twice the previous one, and from 10 on at most 1.7 times.
 */
export const roundNumbers: readonly number[] = [
  ...[1, 2, 3, 5, 7],
  ...Array.from({ length: 6 }, (_, power) =>
    [10, 15, 20, 30, 50, 70].map((number) => number * 10 ** power),
  ).flat(),
];

/** Rates at which needs are observed. Those below 1 show what 1 needs with headroom. */
export const observedRates: readonly number[] = [0.3, 0.5, 0.7, ...roundNumbers];

/** Returns the smallest round number that is at least a value, or the largest if none is. */
export function roundUp(value: number): number {
  return roundNumbers.find((number) => number >= value - 1e-9) ?? roundNumbers.at(-1) ?? 1;
}

/** Each need up to this number is one step. */
const wholeNeedsMax = 40;

/** Number of steps between two round numbers above it: each is at most 9 % more. */
const stepsBetween = 6;

/** More than any proposed limit allows. */
const aboveAll = 1e9;

/** The maximum hits of each step of needs. Round numbers are steps. */
const needValues: readonly number[] = [
  ...Array.from({ length: wholeNeedsMax + 1 }, (_, hits) => hits),
  ...roundNumbers
    .flatMap((low, i) => {
      const ratio = (roundNumbers[i + 1] ?? low) / low;
      return Array.from({ length: ratio === 1 ? 0 : stepsBetween }, (_, step) =>
        Math.ceil(low * ratio ** ((step + 1) / stepsBetween) - 1e-6),
      );
    })
    .filter((hits) => hits > wholeNeedsMax),
  aboveAll,
];

/** Number of steps, which fits in a byte. */
export const needStepCount = needValues.length;

/** Returns the maximum hits of a step, from 0. */
export function needOfStep(step: number): number {
  return needValues[step] ?? aboveAll;
}

/** Returns the step of a number of hits. Treats a 32-bit float near a whole number as equal. */
export function stepOfNeed(hits: number): number {
  const least = hits * (1 - 1e-6);
  if (least <= wholeNeedsMax) return Math.ceil(least);
  let [low, high] = [wholeNeedsMax, needStepCount - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (needOfStep(middle) >= least) high = middle;
    else low = middle + 1;
  }
  return low;
}
