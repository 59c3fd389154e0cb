/**
 * Whether a path is one that the patterns name. `/healthz` is that path and no other; `/login/*` is
 * `/login` and all below it, by whole segments: not `/logins`. `/*` is every path.
 *
 * A path that another server may read as a different one never matches: who could write
 * `/static/../orders` would pass uncounted under `/static/*`.
 *
 * @param urlPath a request's path without its query
 */
export function matchesPath(patterns: readonly string[], urlPath: string): boolean {
  return patterns.some((each) => isNamedBy(each, urlPath)) && isPlainPath(urlPath);
}

/** What stands before `/*`, without the slash; undefined where a pattern is a single path. */
export function pathPrefixOf(pattern: string): string | undefined {
  return pattern.endsWith("/*") ? pattern.slice(0, -2) : undefined;
}

function isNamedBy(pattern: string, urlPath: string): boolean {
  const prefix = pathPrefixOf(pattern);
  if (prefix === undefined) return urlPath === pattern;
  return urlPath === prefix || urlPath.startsWith(`${prefix}/`);
}

/**
 * Whether each server reads a path alike: no `.` or `..` segments, written out, encoded or before a
 * parameter, no empty segments, backslashes or encoded slashes.
 */
export function isPlainPath(urlPath: string): boolean {
  return !/\/(?:\.|%2e){1,2}(?:[/;]|$)|\/\/|\\|%2f|%5c/i.test(urlPath);
}

/** A path without its query. */
export function urlPathOf(path: string): string {
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}
