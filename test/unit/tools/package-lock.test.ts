import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

function readLock(path: string): Lock {
  return JSON.parse(readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8")) as Lock;
}

describe.each(["package-lock.json", "docs/.vitepress/package-lock.json"])("%s", (path) => {
  const lock = readLock(path);

  // A registry that served few platforms once left their packages out of the lock file, and then
  // `npm ci` refused it everywhere. `npm run complete-lock` adds them.
  it("holds every optional package, also those of other platforms", () => {
    const missing = Object.values(lock.packages)
      .flatMap(({ optionalDependencies = {} }) => Object.keys(optionalDependencies))
      .filter((name) => lock.packages[`node_modules/${name}`]?.version === undefined);
    expect(missing).toEqual([]);
  });

  it("has a SHA-512 of every package, also of those of other platforms", () => {
    const unknown = Object.entries(lock.packages)
      .filter(([path, { integrity = "" }]) => path !== "" && !/^sha512-.{86}==$/.test(integrity))
      .map(([path]) => path);
    expect(unknown).toEqual([]);
  });

  it("names no registry, so that everyone installs from their own", () => {
    expect(JSON.stringify(lock)).not.toContain('"resolved"');
  });
});
