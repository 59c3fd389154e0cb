/**
 * Numbers of hits that a person would write: 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100 and so on.
 * Each is at most twice the one before, and from 10 on at most 1.7 times.
 */
export const roundNumbers: readonly number[] = [
  ...[1, 2, 3, 5, 7],
  ...Array.from({ length: 6 }, (_, power) =>
    [10, 15, 20, 30, 50, 70].map((number) => number * 10 ** power),
  ).flat(),
];

/** The least round number that is not below a value; the largest one for values above all. */
export function roundUp(value: number): number {
  return roundNumbers.find((number) => number >= value - 1e-9) ?? roundNumbers.at(-1) ?? 1;
}

/** Steps of needs: whole hits at first, then each 6 % more than the one before. */
const wholeNeedsMax = 40;
const needRatio = 1.06;

/** The number of steps, which fit in a byte; the last one is for all above 10 million hits. */
export const needStepCount = 256;

/** What each step stands for: the most hits that it holds. */
const needValues: readonly number[] = Array.from({ length: needStepCount }, (_, step) =>
  step <= wholeNeedsMax ? step : Math.ceil(wholeNeedsMax * needRatio ** (step - wholeNeedsMax)),
);

/** The most hits of a step, from 0. */
export function needOfStep(step: number): number {
  return needValues[step] ?? Number.POSITIVE_INFINITY;
}

/** The step of so many hits; what a 32-bit float cannot tell from a whole number is that number. */
export function stepOfNeed(hits: number): number {
  const least = hits * (1 - 1e-6);
  if (least <= wholeNeedsMax) return Math.ceil(least);
  const step = wholeNeedsMax + Math.ceil(Math.log(least / wholeNeedsMax) / Math.log(needRatio));
  if (step >= needStepCount) return needStepCount - 1;
  return needOfStep(step - 1) >= least ? step - 1 : step;
}
