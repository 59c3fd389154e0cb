/**
 * How envoyproxy/ratelimit names its statistics. Parts of names may be callers' texts
 * (`detailed_metric`), so what would end a line or a field is replaced in all of them.
 *
 * Source: the "Statistics" chapter of its README, and `SanitizeStatName`.
 */

/** What ends a field or a line of StatsD, and characters that nobody can see. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to replace
const harmful = /[:|\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

const ipv4Address = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/g;

/** A text as a part of a name: dots separate parts, but those of an IPv4 address become `_`. */
export function statText(text: string): string {
  const harmless = text.replace(harmful, "_");
  return harmless.replace(ipv4Address, (address) => address.replaceAll(".", "_"));
}

/** Something that every statistic carries, for example the version of a deployment. */
export interface StatTag {
  readonly name: string;
  readonly value: string;
}

/** What would end a tag, and characters that nobody can see. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to replace
const harmfulInTags = /[,|#\s\u0000-\u001f\u007f-\u009f]/g;

/** A text as a tag's value: a colon may stand in it. */
export function tagText(text: string): string {
  return text.replace(harmfulInTags, "_");
}
