/**
 * Whether a path begins with one of the prefixes, by whole segments: `/login` stands for itself and
 * for all below `/login/`, and not for `/logins`. One that ends in `/` stands for what is below it.
 *
 * A path that another server may read as a different one never matches: who could write
 * `/healthz/../orders` would pass uncounted.
 *
 * @param urlPath a request's path without its query
 */
export function matchesPath(prefixes: readonly string[], urlPath: string): boolean {
  const prefix = prefixes.find((each) => isBelow(each, urlPath));
  return prefix !== undefined && isPlainPath(urlPath);
}

function isBelow(prefix: string, urlPath: string): boolean {
  if (!urlPath.startsWith(prefix)) return false;
  return prefix.endsWith("/") || urlPath.length === prefix.length || urlPath[prefix.length] === "/";
}

/**
 * Whether each server reads a path alike: no `.` or `..` segments, written out, encoded or before a
 * parameter, no empty segments, backslashes or encoded slashes.
 */
export function isPlainPath(urlPath: string): boolean {
  return !/\/(?:\.|%2e){1,2}(?:[/;]|$)|\/\/|\\|%2f|%5c/i.test(urlPath);
}
