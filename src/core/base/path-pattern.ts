/**
 * Reports whether any pattern matches a path. `/healthz` matches that path only. `/login/*` matches
 * `/login` and everything below it, by whole segments: not `/logins`. `/*` matches every path.
 *
 * A path that another server may read as a different one never matches. Otherwise,
 * `/static/../orders` would pass uncounted under `/static/*`.
 *
 * @param urlPath a request's path without its query
 */
export function matchesPath(patterns: readonly string[], urlPath: string): boolean {
  return patterns.some((each) => isNamedBy(each, urlPath)) && isPlainPath(urlPath);
}

/** Returns the part before `/*`, without the slash. Undefined if a pattern is a single path. */
export function pathPrefixOf(pattern: string): string | undefined {
  return pattern.endsWith("/*") ? pattern.slice(0, -2) : undefined;
}

function isNamedBy(pattern: string, urlPath: string): boolean {
  const prefix = pathPrefixOf(pattern);
  if (prefix === undefined) return urlPath === pattern;
  return urlPath === prefix || urlPath.startsWith(`${prefix}/`);
}

/**
 * Reports whether all servers read a path in the same way. It has no `.` or `..` segments (plain,
 * encoded or before a parameter), empty segments, backslashes, or encoded slashes and backslashes.
 */
export function isPlainPath(urlPath: string): boolean {
  return !/\/(?:\.|%2e){1,2}(?:[/;]|$)|\/\/|\\|%2f|%5c/i.test(urlPath);
}

/** Returns a path without its query and fragment. */
export function urlPathOf(path: string): string {
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}
