import { mapsAt, numberAt, parsePlain, textAt } from "./json-access.js";

/** Maximum length of statistics, in UTF-16 units. */
export const statsCharsMax = 134_217_728;

/** Counters and gauges of an Envoy by their full names, at one time. */
export type EnvoyStats = ReadonlyMap<string, number>;

/** Statistics, or why they are invalid. */
type ReadStats =
  | { readonly kind: "stats"; readonly stats: EnvoyStats }
  | { readonly kind: "unreadable"; readonly why: string };

/** Reads the response of Envoy's admin port to `/stats?format=json` or `/stats`. */
export function readStats(text: string): ReadStats {
  if (text.length > statsCharsMax) {
    return { kind: "unreadable", why: `they are longer than ${statsCharsMax} characters` };
  }
  return text.trimStart().startsWith("{") ? readJson(text) : readLines(text);
}

function readJson(text: string): ReadStats {
  const read = parsePlain(text);
  if (read.kind === "unreadable") return read;
  const stats = new Map<string, number>();
  for (const stat of mapsAt(read.value, "stats")) {
    const [name, value] = [textAt(stat, "name"), numberAt(stat, "value")];
    if (name !== undefined && value !== undefined) stats.set(name, value);
  }
  return checked(stats);
}

function readLines(text: string): ReadStats {
  const stats = new Map<string, number>();
  for (const line of text.split("\n")) {
    // Names may contain colons: in IPv6 addresses, and in Istio's clusters.
    const at = line.lastIndexOf(": ");
    const digits = line.slice(at + 2).trim();
    if (at > 0 && /^\d{1,20}$/.test(digits)) stats.set(line.slice(0, at), Number(digits));
  }
  return checked(stats);
}

function checked(stats: EnvoyStats): ReadStats {
  if (stats.size > 0) return { kind: "stats", stats };
  const why = "they contain no counter and no gauge: use /stats?format=json";
  return { kind: "unreadable", why };
}

/** Counts of the calls to Headgate by its filters, over all clusters and listeners. */
export interface AskCounts {
  /** Answers that admit or refuse requests. */
  readonly answered: number;
  /** Calls without an answer in time, or with an error. */
  readonly failed: number;
  /** Failed calls whose requests continued. */
  readonly letPass: number;
}

/** Returns counts of rate limit filters. Source: Envoy, "Rate limit", statistics. */
export function rateLimitCounts(stats: EnvoyStats): AskCounts {
  const sums = sumByEnd(stats, "cluster.", ".ratelimit.");
  return {
    answered: sums("ok") + sums("over_limit"),
    failed: sums("error"),
    letPass: sums("failure_mode_allowed"),
  };
}

/** Returns counts of ext_proc filters. Source: Envoy, "External processing", statistics. */
export function extProcCounts(stats: EnvoyStats): AskCounts {
  const sums = sumByEnd(stats, "http.", ".ext_proc.");
  const failed = sums("streams_failed") + sums("message_timeouts");
  return {
    answered: Math.max(0, sums("streams_started") - failed),
    failed,
    letPass: sums("failure_mode_allowed"),
  };
}

/**
 * Sums statistics by the last word of their names, for any prefix of the filter. Uses no pattern,
 * because names may have any length and any characters.
 */
function sumByEnd(stats: EnvoyStats, start: string, middle: string): (end: string) => number {
  const sums = new Map<string, number>();
  for (const [name, value] of stats) {
    if (!name.startsWith(start) || !name.includes(middle)) continue;
    const end = name.slice(name.lastIndexOf(".") + 1);
    sums.set(end, (sums.get(end) ?? 0) + value);
  }
  return (end) => sums.get(end) ?? 0;
}

/** Returns a quantile of values, from 0 to 1, by the nearest rank; 0 if there are none. */
export function quantileOf(values: readonly number[], quantile: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)] ?? 0;
}
