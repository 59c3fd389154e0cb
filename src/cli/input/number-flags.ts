import { usageFailure } from "../terminal/command-failure.js";

/**
 * Reads a whole number of at least 1.
 *
 * @throws CommandFailure
 */
export function readCount(flag: string, text: string, most: number): number {
  const count = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(count >= 1 && count <= most)) {
    throw usageFailure(`${flag} must be a whole number from 1 to ${most}`);
  }
  return count;
}

/**
 * Reads a whole number of at least 0.
 *
 * @throws CommandFailure
 */
export function readWhole(flag: string, text: string, most: number): number {
  return text === "0" ? 0 : readCount(flag, text, most);
}

/**
 * Reads a ratio above 0 and at most 1.
 *
 * @throws CommandFailure
 */
export function readPart(flag: string, text: string): number {
  const part = /^(?:\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : Number.NaN;
  if (!(part > 0 && part <= 1)) throw usageFailure(`${flag} must be above 0, and 1 at most`);
  return part;
}

/**
 * Reads the version of what is replaced, as it was printed.
 *
 * @throws CommandFailure
 */
export function readExpectedVersion(text: string): bigint {
  if (!/^\d{1,18}$/.test(text)) {
    throw usageFailure("--expected-version must be a version as it is printed, such as 3");
  }
  return BigInt(text);
}
