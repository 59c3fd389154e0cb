/**
 * Adds to package-lock.json the optional packages for other platforms that `npm install` leaves out
 * when the registry in use does not serve them. `npm ci` refuses a lock file that lacks one, on
 * every platform. Run it after `npm install`: npm run complete-lock
 *
 * It asks the registry for the digest of each package that has none, so that nobody on any platform
 * runs a build that is not the one that was locked.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const cpuNames = new Map([
  ["aarch64", "arm64"],
  ["armv7", "arm"],
]);

const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
for (const { optionalDependencies = {}, dev } of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    lock.packages[`node_modules/${name}`] ??= optionalPackage(name, version, dev === true);
  }
}
for (const [path, locked] of Object.entries(lock.packages)) {
  const name = path.split("node_modules/").at(-1);
  if (name !== "") locked.integrity ??= digestOf(name, locked.version);
}
const sorted = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, "en"));
lock.packages = Object.fromEntries(sorted);
writeFileSync("package-lock.json", `${JSON.stringify(lock, undefined, 2)}\n`);

/** The platform stands in the name: @rollup/rollup-linux-arm-musleabihf. */
function optionalPackage(name, version, isDev) {
  const [os, cpu, abi = ""] = name.split("/").at(-1).split("-").slice(1);
  const libc = os !== "linux" ? undefined : abi.startsWith("musl") ? "musl" : "glibc";
  return {
    version,
    cpu: [cpuNames.get(cpu) ?? cpu],
    ...(isDev && { dev: true }),
    ...(abi !== "" && libc !== undefined && { libc: [libc] }),
    optional: true,
    os: [os],
  };
}

/** What the registry says; undefined where it does not know the package. */
function digestOf(name, version) {
  const words = ["view", `${name}@${version}`, "dist.integrity"];
  try {
    return execFileSync("npm", words, { encoding: "utf8" }).trim() || undefined;
  } catch {
    console.error(`${name}@${version}: the registry has no digest for it`);
    return undefined;
  }
}
