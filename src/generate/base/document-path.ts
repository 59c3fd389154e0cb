/** Maximum length of the path of a generated file, in characters. */
export const documentPathCharsMax = 512;

/**
 * Reports whether a path is safe below a folder: names separated by `/`, each of letters, digits
 * and a few signs, none of which leads upwards, hides a file or has a meaning in a shell.
 */
export function isSafePath(path: string): boolean {
  if (path.length > documentPathCharsMax) return false;
  return path.split("/").every((name) => /^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$/.test(name));
}
