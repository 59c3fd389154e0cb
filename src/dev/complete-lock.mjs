/**
 * Adds to package-lock.json the optional packages for other platforms that `npm install` leaves out
 * when the registry in use does not serve them. `npm ci` refuses a lock file that lacks one, on
 * every platform. Run it after `npm install`: npm run complete-lock
 *
 * What it adds has a version but no integrity, which only the registry could tell; npm fetches such
 * a package on its own platform alone, and skips it on all others.
 */
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
