import { formatEntries, readEntries } from "../../core/limits/descriptor-text.js";
import type { DescriptorEntry } from "../../core/limits/key.js";

/** Where the reader is: a path, and how that view is set. All of it stands in the URL. */
export interface Route {
  readonly path: readonly string[];
  readonly params: Readonly<Record<string, string>>;
}

/** Reads the part of a URL behind `#`. Whatever is no route is the overview. */
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
  // Made at once, so that a name such as `__proto__` is one like any other.
  return { path: path.map(decode), params: Object.fromEntries(params) };
}

/** Writes a route so that `parseRoute` reads it back; empty parameters are left out. */
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

/** A lone surrogate, which no URL holds, stands as the replacement character. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** A link that somebody cut in the middle still opens. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The route of a key's page: each entry is a part of the path. */
export function keyRoute(domain: string, entries: readonly DescriptorEntry[]): string {
  return formatRoute(["key", domain, ...entries.map((entry) => formatEntries([entry]))]);
}

/** The key of such a route; undefined where somebody has changed it into none. */
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
