import { keysOf } from "../base/key-of.js";
import { cutText } from "../base/text.js";
import { type Usage, type UsageCount, usageCountMax } from "../budgets/usage.js";

/** Maximum characters that are kept of a model name. */
export const modelCharsMax = 128;

/** Cuts a model name from a caller. Half a Unicode character becomes U+FFFD. */
export function cutModel(text: string): string {
  return cutText(text, modelCharsMax).toWellFormed();
}

/**
 * Parses a count in decimal digits, as in JSON and headers. A fraction is rounded up, and the
 * maximum is `usageCountMax`. Undefined if it is not a count, such as a negative number.
 */
export function parseCount(text: string): number | undefined {
  if (!/^\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)) return undefined;
  return Math.min(usageCountMax, Math.ceil(Number(text)));
}

/** A usage that is being assembled. */
export type MutableUsage = { -readonly [Count in UsageCount]?: number };

/**
 * Returns the usage in response headers or trailers.
 *
 * @param fields names of headers, in lower case, by count
 * @returns undefined if none of them has a count
 */
export function usageFromHeaders(
  fields: Readonly<Partial<Record<UsageCount, string>>>,
  headers: ReadonlyMap<string, string>,
): Usage | undefined {
  return usageOf(keysOf(fields), (count) => headers.get(fields[count] ?? "")?.trim());
}

/**
 * Returns the usage in dynamic metadata of another filter.
 *
 * @param fields paths by count; none leads into a list
 * @param values of the filter's namespace, by paths whose steps are joined by dots
 * @returns undefined if none of them has a count
 */
export function usageFromMetadata(
  fields: Readonly<Partial<Record<UsageCount, readonly string[]>>>,
  values: ReadonlyMap<string, string | number | boolean>,
): Usage | undefined {
  return usageOf(keysOf(fields), (count) => {
    const value = values.get((fields[count] ?? []).join("."));
    return value === undefined ? undefined : String(value);
  });
}

function usageOf(
  counts: readonly UsageCount[],
  textOf: (count: UsageCount) => string | undefined,
): Usage | undefined {
  const usage: MutableUsage = {};
  let isEmpty = true;
  for (const name of counts) {
    const count = parseCount(textOf(name) ?? "");
    if (count === undefined) continue;
    usage[name] = count;
    isEmpty = false;
  }
  return isEmpty ? undefined : usage;
}
