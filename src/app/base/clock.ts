/** Formats a time of `epochUs` as in logs and responses. */
export function isoTime(epochUs: number): string {
  return new Date(epochUs / 1_000).toISOString();
}

/** Parses a date of an HTTP header, to milliseconds since 1970. Undefined if it is not a date. */
export function parseDateMs(text: string): number | undefined {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}
