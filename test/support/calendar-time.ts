/** A time as people write it, in microseconds since 1970. Example: `2024-02-29T23:59:59Z`. */
export function epochUsOf(text: string): number {
  return Date.parse(text) * 1_000;
}

/** The other way round, with milliseconds. */
export function isoTextOf(epochUs: number): string {
  return new Date(epochUs / 1_000).toISOString();
}
