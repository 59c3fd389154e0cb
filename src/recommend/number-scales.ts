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

/** Rates at which needs are observed; those below 1 tell what 1 needs with headroom. */
export const observedRates: readonly number[] = [0.3, 0.5, 0.7, ...roundNumbers];

/** The least round number that is not below a value; the largest one for values above all. */
export function roundUp(value: number): number {
  return roundNumbers.find((number) => number >= value - 1e-9) ?? roundNumbers.at(-1) ?? 1;
}

/** Needs up to this are steps of their own. */
const wholeNeedsMax = 40;

/** Steps from one round number to the next one above these: each is at most 9 % more. */
const stepsBetween = 6;

/** More than any limit allows that is proposed. */
const aboveAll = 1e9;

/** What each step of needs stands for: the most hits that it holds. Round numbers are steps. */
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

/** The number of steps, which fit in a byte. */
export const needStepCount = needValues.length;

/** The most hits of a step, from 0. */
export function needOfStep(step: number): number {
  return needValues[step] ?? aboveAll;
}

/** The step of so many hits; what a 32-bit float cannot tell from a whole number is that number. */
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
