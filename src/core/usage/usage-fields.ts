import { keysOf } from "../base/key-of.js";
import { cutText } from "../base/text.js";
import { type Usage, type UsageCount, usageCountMax } from "../budgets/usage.js";

/** Characters that are kept of a model's name. */
export const modelCharsMax = 128;

/** A caller's name of a model, bounded; half a character of Unicode becomes U+FFFD. */
export function cutModel(text: string): string {
  return cutText(text, modelCharsMax).toWellFormed();
}

/**
 * A count of decimal digits, as JSON and headers have it: a fraction is rounded up, and more than
 * `usageCountMax` is that. Undefined for what is none, a negative number included.
 */
export function parseCount(text: string): number | undefined {
  if (!/^\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)) return undefined;
  return Math.min(usageCountMax, Math.ceil(Number(text)));
}

/** A usage that is being put together. */
export type MutableUsage = { -readonly [Count in UsageCount]?: number };

/**
 * What response headers or trailers say.
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
 * What dynamic metadata of another filter says.
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
