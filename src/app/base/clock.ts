/** A time of `epochUs` as logs and answers say it. */
export function isoTime(epochUs: number): string {
  return new Date(epochUs / 1_000).toISOString();
}

/** A date as HTTP headers say it, in milliseconds since 1970; undefined where it is none. */
export function parseDateMs(text: string): number | undefined {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}
