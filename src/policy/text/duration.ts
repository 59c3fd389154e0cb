/** Milliseconds of each unit, largest first: the order in which they must be written. */
const unitsMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;

/** Pattern of a duration. It also matches the empty text, which is not a duration. */
export const durationPattern =
  /^(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?(?:([0-9]{1,9})ms)?$/;

/**
 * Reads a duration in milliseconds: whole numbers with the units d, h, m, s and ms, each at most
 * once and largest first. Undefined for anything else.
 *
 * Example: `1m30s` is 90,000, and `0s` is 0.
 */
export function parseDurationMs(text: string): number | undefined {
  const found = text === "" ? undefined : durationPattern.exec(text)?.slice(1);
  if (found === undefined) return undefined;
  return Object.values(unitsMs).reduce((sum, ms, i) => sum + Number(found[i] ?? 0) * ms, 0);
}

/** Formats a duration as in a policy. Example: 90,000 is `1m30s`, and 0 is `0s`. */
export function formatDuration(durationMs: number): string {
  let restMs = durationMs;
  let text = "";
  for (const [unit, ms] of Object.entries(unitsMs)) {
    const count = Math.floor(restMs / ms);
    if (count > 0) text += `${count}${unit}`;
    restMs -= count * ms;
  }
  return text === "" ? "0s" : text;
}
