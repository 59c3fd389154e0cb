/**
 * Installs, generates and builds, each only when its inputs or its outputs have changed.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { withLock } from "../src/programs/lock.mjs";

const installHint = `
npm could not install the packages of package-lock.json from the package registry. Check the
network, the proxy (HTTPS_PROXY) and the output of "npm ping", then run the command again.`;

/**
 * A step, in the order in which they run. Its stamp, in a file of the folder it makes, tells what
 * went in (by content) and what came out (by size and time), so that neither an edited source nor
 * a build by hand is ever taken for current.
 * @typedef {{ name: string, args: string[], inputs: string[], output: string, hint?: string }} Step
 */

/** @type {Step[]} */
const buildSteps = [
  {
    name: "generate",
    args: ["run", "--silent", "generate"],
    inputs: ["proto", "package-lock.json"],
    output: "src/gen",
  },
  {
    name: "build",
    args: ["run", "--silent", "compile"],
    inputs: [
      "src",
      "tools/compile.mjs",
      "tools/join-chunks.mjs",
      "tools/load-later.mjs",
      "tsconfig.json",
      "package-lock.json",
    ],
    output: "dist",
  },
];

/** A step that failed, with all that a person needs to know as its message. */
export class StepError extends Error {}

/**
 * Makes the working folder ready to run.
 * @param {import("./child.mjs").Supervisor} supervisor
 * @throws {StepError} when a step fails
 */
export async function prepare(supervisor) {
  if (isInstalled() && buildSteps.every(isCurrent)) return;
  // Two commands started together in a fresh clone would delete each other's packages.
  await withLock(".tools/prepare.lock", async () => {
    if (!isInstalled()) {
      const args = ["ci", "--ignore-scripts", "--include=dev", "--no-audit", "--no-fund"];
      await runStep(supervisor, { name: "install", args, hint: installHint });
      writeFileSync(installStamp, installWanted());
    }
    for (const step of buildSteps) {
      if (isCurrent(step)) continue;
      await runStep(supervisor, step);
      writeFileSync(stampPath(step), stampOf(step));
    }
  });
}

const installStamp = "node_modules/.headgate-lock";

/** node_modules moved to another platform lacks that platform's binaries. */
function installWanted() {
  return `${process.platform}-${process.arch} ${hashOf(["package-lock.json"])}\n`;
}

/** Packages that someone installed by hand, from this very lock file, are taken over. */
function isInstalled() {
  if (existsSync(installStamp)) {
    if (readFileSync(installStamp, "utf8") === installWanted()) return true;
    if (!readFileSync(installStamp, "utf8").startsWith(`${process.platform}-`)) return false;
  }
  if (!holdsLockedPackages()) return false;
  writeFileSync(installStamp, installWanted());
  return true;
}

/** npm writes its own account of node_modules last, when an installation is whole. */
function holdsLockedPackages() {
  const account = "node_modules/.package-lock.json";
  if (!existsSync(account)) return false;
  const wanted = JSON.parse(readFileSync("package-lock.json", "utf8")).packages;
  const present = JSON.parse(readFileSync(account, "utf8")).packages;
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    if (path === "") return true;
    // Binaries for other platforms are optional, and rightly absent.
    return path in present ? present[path].version === version : optional === true;
  });
}

/** @param {Step} step */
function isCurrent(step) {
  return existsSync(stampPath(step)) && readFileSync(stampPath(step), "utf8") === stampOf(step);
}

/** @param {Step} step */
function stampPath(step) {
  return join(step.output, ".stamp");
}

/** @param {Step} step */
function stampOf(step) {
  const made = createHash("sha256");
  for (const path of filesUnder(step.output)) {
    if (path === stampPath(step)) continue;
    const { size, mtimeMs } = statSync(path);
    made.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return `${hashOf(step.inputs)} ${made.digest("hex")}\n`;
}

/** @param {string[]} roots files and folders */
function hashOf(roots) {
  const hash = createHash("sha256");
  for (const path of roots.flatMap(filesUnder)) {
    const content = readFileSync(path);
    hash.update(`${path} ${content.length}\n`).update(content);
  }
  return hash.digest("hex");
}

/** What is written after the step that makes the folder. */
const unstamped = [".stamp", "sbom.cdx.json"];

/** All files of a folder in one order, or the file itself; nothing where there is nothing. */
function filesUnder(root) {
  if (!existsSync(root)) return [];
  if (!statSync(root).isDirectory()) return [root];
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !unstamped.includes(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/**
 * Runs npm in silence; what it printed is shown only when it fails.
 * @throws {StepError}
 */
async function runStep(supervisor, { name, args, hint = "" }) {
  const startedMs = performance.now();
  process.stderr.write(`${name}: npm ${args.join(" ")} ...`);
  const npm = npmCommand();
  const { code, output } = await supervisor.capture(npm.file, [...npm.args, ...args]);
  const tookSeconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  process.stderr.write(code === 0 ? ` ${tookSeconds} s\n` : ` failed after ${tookSeconds} s\n`);
  if (code !== 0) throw new StepError(`${output.trimEnd()}\n${name} failed.${hint}`);
}

/** The npm that started us, else the one on PATH. */
function npmCommand() {
  const path = process.env.npm_execpath;
  return path !== undefined && basename(path) === "npm-cli.js"
    ? { file: process.execPath, args: [path] }
    : { file: "npm", args: [] };
}
