/** Longest path of a generated file, in characters. */
export const documentPathCharsMax = 512;

/**
 * Whether a path may be written below a folder: names with `/` between them, each of letters,
 * digits and a few signs, none of which leads up, hides a file or means something to a shell.
 */
export function isSafePath(path: string): boolean {
  if (path.length > documentPathCharsMax) return false;
  return path.split("/").every((name) => /^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$/.test(name));
}
