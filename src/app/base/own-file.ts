import { existsSync } from "node:fs";

/** How deep a module of this program lies in its package. */
const foldersMax = 5;

/**
 * A file of this program by its path in the package, in `src` or in `dist`: the nearest folder
 * around this module that has it counts, since sources and builds differ in depth.
 *
 * @param path such as `package.json`, or `app/policy/policy-worker.js`
 * @returns undefined where this installation does not have it
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
 * Whether this program is an installed package: an update replaces its files, and they may be
 * another user's.
 */
export function isInstalledPackage(): boolean {
  return new URL(import.meta.url).pathname.includes("/node_modules/");
}
