import { formatEntries, readEntries } from "../../core/limits/descriptor-text.js";
import type { DescriptorEntry } from "../../core/limits/key.js";

/** A location in the console: a path, and the settings of its view. The URL contains all of it. */
export interface Route {
  readonly path: readonly string[];
  readonly params: Readonly<Record<string, string>>;
}

/** Reads the part of a URL after `#`. An empty path is the overview. */
export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#?\/?/, "");
  const mark = text.indexOf("?");
  const pathText = mark < 0 ? text : text.slice(0, mark);
  const path = pathText.split("/").filter((part) => part !== "");
  const params: (readonly [string, string])[] = [];
  for (const part of mark < 0 ? [] : text.slice(mark + 1).split("&")) {
    const [name = "", value = ""] = part.split(/=(.*)/s).map(decode);
    if (name !== "") params.push([name, value]);
  }
  // Created in one step, so that a name such as `__proto__` is not special.
  return { path: path.map(decode), params: Object.fromEntries(params) };
}

/** Writes a route that `parseRoute` can read. Leaves out empty parameters. */
export function formatRoute(
  path: readonly string[],
  params: Readonly<Record<string, string | undefined>> = {},
): string {
  const query = Object.entries(params)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value = ""]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join("&");
  const hash = `#/${path.map(encode).join("/")}`;
  return query === "" ? hash : `${hash}?${query}`;
}

/** Replaces lone surrogates, which URLs cannot contain, by the replacement character. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** Decodes a part. A link that was cut in the middle still opens. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the route of a key's page, with each entry as a part of the path. */
export function keyRoute(domain: string, entries: readonly DescriptorEntry[]): string {
  return formatRoute(["key", domain, ...entries.map((entry) => formatEntries([entry]))]);
}

/** Returns the key of such a route; undefined if a user has changed it to an invalid one. */
export function keyOfRoute(
  path: readonly string[],
): { readonly domain: string; readonly entries: readonly DescriptorEntry[] } | undefined {
  const [, domain = "", ...parts] = path;
  const entries = parts.map((part) => readEntries(part));
  if (domain === "" || entries.length === 0) return undefined;
  return entries.includes(undefined)
    ? undefined
    : { domain, entries: entries.flatMap((one) => one ?? []) };
}
