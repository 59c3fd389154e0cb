import { existsSync } from "node:fs";

/** Maximum depth of a module of this program in its package. */
const foldersMax = 5;

/**
 * Returns a file of this program by its path in the package, in `src` or in `dist`. The nearest
 * folder around this module that has the file counts, because sources and builds differ in depth.
 *
 * @param path such as `package.json`, or `app/policy/policy-worker.js`
 * @returns undefined if this installation does not have it
 */
export function ownFile(path: string): URL | undefined {
  let folder = new URL(".", import.meta.url);
  for (let depth = 0; depth < foldersMax; depth += 1) {
    const file = new URL(path, folder);
    if (existsSync(file)) return file;
    folder = new URL("..", folder);
  }
  return undefined;
}

/**
 * Reports whether this program is an installed package. An update replaces its files, and they may
 * belong to another user.
 */
export function isInstalledPackage(): boolean {
  return new URL(import.meta.url).pathname.includes("/node_modules/");
}
