/**
 * Names of statistics in envoyproxy/ratelimit. Parts of names may be callers' texts
 * (`detailed_metric`), so characters that end a line or a field are replaced in all of them.
 *
 * Source: the "Statistics" chapter of its README, and `SanitizeStatName`.
 */

/** Characters that end a field or a line of StatsD, and invisible ones. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to replace
const harmful = /[:|\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

const ipv4Address = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/g;

/** Converts a text to a part of a name. Dots separate parts, but those of IPv4 become `_`. */
export function statText(text: string): string {
  const harmless = text.replace(harmful, "_");
  return harmless.replace(ipv4Address, (address) => address.replaceAll(".", "_"));
}

/** A tag of every statistic, for example the version of a deployment. */
export interface StatTag {
  readonly name: string;
  readonly value: string;
}

/** Characters that end a tag, and invisible ones. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to replace
const harmfulInTags = /[,|#\s\u0000-\u001f\u007f-\u009f]/g;

/** Converts a text to the value of a tag. It may contain a colon. */
export function tagText(text: string): string {
  return text.replace(harmfulInTags, "_");
}
