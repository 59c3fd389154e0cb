import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const lock = JSON.parse(
  readFileSync(new URL("../../../package-lock.json", import.meta.url), "utf8"),
) as { readonly packages: Readonly<Record<string, LockedPackage>> };

/**
 * Builds of the formatter, buf, the parser of the mutation tests and the tests' bundler, none of
 * which is shipped. A build that gets a digest leaves this list, and none is added to it.
 */
const buildsWithoutDigest: Readonly<Record<string, string>> = {
  "@biomejs/cli":
    "android-arm64 android-x64 darwin-arm64 darwin-x64 linux-arm64-musl linux-x64-musl " +
    "win32-arm64 win32-x64",
  "@bufbuild/buf": "darwin-arm64 darwin-x64 linux-armv7 win32-arm64 win32-x64",
  "@oxc-parser/binding":
    "android-arm-eabi android-arm64 darwin-arm64 darwin-x64 freebsd-x64 linux-arm-gnueabihf " +
    "linux-arm-musleabihf linux-arm64-musl linux-ppc64-gnu linux-riscv64-gnu " +
    "linux-riscv64-musl linux-s390x-gnu linux-x64-musl openharmony-arm64 win32-arm64-msvc " +
    "win32-ia32-msvc win32-x64-msvc",
  "@rollup/rollup":
    "android-arm-eabi android-arm64 android-x64 darwin-arm64 darwin-x64 freebsd-arm64 " +
    "freebsd-x64 linux-arm-gnueabihf linux-arm-musleabihf linux-arm64-musl linux-loong64-gnu " +
    "linux-loong64-musl linux-ppc64-gnu linux-ppc64-musl linux-riscv64-gnu linux-riscv64-musl " +
    "linux-s390x-gnu linux-x64-musl openbsd-x64 openharmony-arm64 win32-arm64-msvc " +
    "win32-ia32-msvc win32-x64-gnu win32-x64-msvc",
};

describe("package-lock.json", () => {
  // A registry that served few platforms once left their packages out of the lock file, and then
  // `npm ci` refused it everywhere. `npm run complete-lock` adds them.
  it("holds every optional package, also those of other platforms", () => {
    const missing = Object.values(lock.packages)
      .flatMap(({ optionalDependencies = {} }) => Object.keys(optionalDependencies))
      .filter((name) => lock.packages[`node_modules/${name}`]?.version === undefined);
    expect(missing).toEqual([]);
  });

  // What `npm run complete-lock` adds has none, since the registry did not serve it: such a package
  // is only there for people who develop on its platform. CI and the image are Linux with glibc.
  it("has a SHA-512 of every package, but of these tools' builds for other platforms", () => {
    const unknown = Object.entries(lock.packages)
      .filter(([path, { integrity = "" }]) => path !== "" && !/^sha512-.{86}==$/.test(integrity))
      .map(([path]) => path.replace("node_modules/", ""));
    const known = Object.entries(buildsWithoutDigest).flatMap(([name, platforms]) =>
      platforms.split(" ").map((platform) => `${name}-${platform}`),
    );
    expect(unknown.sort()).toEqual(known.sort());
    const isTool = ({ dev = false, optional = false }: LockedPackage) => dev && optional;
    expect(unknown.filter((name) => !isTool(lock.packages[`node_modules/${name}`] ?? {}))).toEqual(
      [],
    );
  });

  it("names no registry, so that everyone installs from their own", () => {
    expect(JSON.stringify(lock)).not.toContain('"resolved"');
  });
});
