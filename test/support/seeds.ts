/**
 * How many times the usual number of seeds the randomized tests use: `npm run soak` sets 20, and
 * `npm run all` a tenth.
 */
export const seedsFactorName = "HEADGATE_SEEDS_FACTOR";

/** How many they use at least, where the usual number is not smaller: `npm run all` sets 5. */
export const seedsMinName = "HEADGATE_SEEDS_MIN";

/** The first seed of every randomized test, in place of its own: `npm run soak` draws one. */
export const seedsFirstName = "HEADGATE_SEEDS_FIRST";

/**
 * How many seeds, or runs of a property, a randomized test uses: the usual number times
 * HEADGATE_SEEDS_FACTOR (default 1), rounded up, and at least HEADGATE_SEEDS_MIN (default 1).
 */
export function seedCount(defaultCount: number): number {
  const fewest = Math.min(defaultCount, numberAboveZero(seedsMinName));
  return Math.ceil(Math.max(fewest, defaultCount * seedsFactor()));
}

/**
 * How often its seeds must have met something, so that a randomized test shows what it claims: more
 * often than that number, in proportion to them. Fewer seeds than usual may all miss it by chance:
 * then it is below zero, and only `npm test` shows it.
 */
export function metCount(defaultCount: number): number {
  const factor = seedsFactor();
  return factor < 1 ? -1 : defaultCount * factor;
}

/** The first seed that a randomized test uses: its usual one, or HEADGATE_SEEDS_FIRST. */
export function firstSeed(usual: number): number {
  const text = process.env[seedsFirstName];
  if (text === undefined) return usual;
  const first = Number(text);
  if (!/^[0-9]{1,10}$/.test(text) || first > firstSeedMax) {
    throw new Error(`${seedsFirstName} is not a whole number from 0 to ${firstSeedMax}`);
  }
  return first;
}

/** Seeds up to a million above it are still what fast-check takes: 32 bits with a sign. */
export const firstSeedMax = 2_000_000_000;

/** That many seeds, from the first one on: those of a longer run begin with those of the usual. */
export function seedsFrom(defaultFirst: number, defaultCount: number): readonly number[] {
  const first = firstSeed(defaultFirst);
  return Array.from({ length: seedCount(defaultCount) }, (_, i) => first + i);
}

/** What runs one seed alone, in front of a command. */
export function oneSeedEnv(seed: number): string {
  return `${seedsFirstName}=${seed} ${seedsFactorName}=0.001`;
}

/** Runs a history for each seed, one after the other; a failure tells its seed. */
export async function runSeeds(
  seeds: readonly number[],
  run: (seed: number) => void | Promise<void>,
): Promise<void> {
  for (const seed of seeds) {
    try {
      await run(seed);
    } catch (cause) {
      const words = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`seed ${seed}: ${words}`, { cause });
    }
  }
}

/**
 * That many runs of a property, for `fc.assert`, with the same values each time: from the seed
 * HEADGATE_SEEDS_FIRST (default 1). A failure prints the seed, and the smallest case that fails.
 */
export function propertyRuns(defaultCount: number): { numRuns: number; seed: number } {
  return { numRuns: seedCount(defaultCount), seed: firstSeed(1) };
}

/**
 * The time that a test over seeds may take, in milliseconds: as much longer as it has more seeds,
 * and never shorter.
 */
export function seedsTimeoutMs(defaultMs: number): number {
  return defaultMs * Math.max(1, seedsFactor());
}

function seedsFactor(): number {
  return numberAboveZero(seedsFactorName);
}

/** The number that a variable sets; 1 where it is not set. */
function numberAboveZero(name: string): number {
  const text = process.env[name] ?? "1";
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number) || number <= 0) {
    throw new Error(`${name} is not a number above 0`);
  }
  return number;
}
