/**
 * Builds the site of the documentation into docs/.vitepress/dist, or shows it while it is written.
 * Its generator has packages of its own, which are installed here when they are needed: they weigh
 * a hundred megabytes that no other command uses.
 *
 * Usage: node tools/docs.mjs [build|dev|diagrams]
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "../src/programs/lock.mjs";
import { Supervisor } from "./child.mjs";

const site = "docs/.vitepress";
const generator = join(site, "node_modules/vitepress/bin/vitepress.js");
const diagrams = join(site, "diagrams.mjs");
const stamp = join(site, "node_modules/.installed");

/** What is built soon has gone again: to look for it seldom saves a tenth of the time. */
const collectingLess = ["--max-semi-space-size=64", "--single-threaded-gc"];

/**
 * What each command runs, one after the other, as arguments of `node`.
 * @type {Record<string, string[][]>}
 */
const commands = {
  build: [[diagrams], [...collectingLess, generator, "build", "docs"]],
  dev: [[generator, "dev", "docs"]],
  diagrams: [[diagrams, "--write"]],
};

process.exitCode = await main(process.argv[2] ?? "build");

/** @returns {Promise<number>} the exit code */
async function main(command) {
  if (!Object.hasOwn(commands, command)) {
    process.stderr.write(`usage: node tools/docs.mjs ${Object.keys(commands).join("|")}\n`);
    return 2;
  }
  // npm and Vite would take another mode from whoever runs this, such as a test.
  delete process.env.NODE_ENV;
  process.chdir(fileURLToPath(new URL("..", import.meta.url)));
  mkdirSync(".tools", { recursive: true });
  const supervisor = new Supervisor();
  // Two builds at a time would write the same files.
  return withLock(".tools/docs.lock", async () => {
    let code = await install(supervisor);
    for (const args of commands[command]) {
      if (code === 0) code = await supervisor.run([args]);
    }
    return code;
  });
}

/** Installs the generator, unless it is the one of the lock file for this platform. */
async function install(supervisor) {
  const lock = readFileSync(join(site, "package-lock.json"), "utf8");
  const wanted = `${process.platform}-${process.arch}\n${lock}`;
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return 0;
  process.stderr.write("docs: installing the site generator ...\n");
  const args = ["ci", "--prefix", site, "--ignore-scripts", "--no-audit", "--no-fund"];
  const { code, output } = await supervisor.capture("npm", args);
  if (code !== 0)
    process.stderr.write(`${output}\nnpm could not install the packages of ${site}.\n`);
  else writeFileSync(stamp, wanted);
  return code;
}
