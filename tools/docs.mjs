/**
 * Builds the site of the documentation into docs/.vitepress/dist, or shows it while it is written.
 * Its generator has packages of its own, which are installed here when they are needed: they weigh
 * a hundred megabytes that no other command uses.
 *
 * Usage: node tools/docs.mjs [build|dev]
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "../src/programs/lock.mjs";
import { Supervisor } from "./child.mjs";

const site = "docs/.vitepress";
const generator = join(site, "node_modules/vitepress/bin/vitepress.js");
const stamp = join(site, "node_modules/.installed");

process.exitCode = await main(process.argv[2] ?? "build");

/** @returns {Promise<number>} the exit code */
async function main(command) {
  if (command !== "build" && command !== "dev") {
    process.stderr.write("usage: node tools/docs.mjs [build|dev]\n");
    return 2;
  }
  process.chdir(fileURLToPath(new URL("..", import.meta.url)));
  mkdirSync(".tools", { recursive: true });
  const supervisor = new Supervisor();
  // Two builds at a time would write the same files.
  return withLock(".tools/docs.lock", async () => {
    const installCode = await install(supervisor);
    if (installCode !== 0) return installCode;
    return supervisor.run([[generator, command, "docs"]]);
  });
}

/** Installs the generator, unless it is the one of the lock file for this platform. */
async function install(supervisor) {
  const lock = readFileSync(join(site, "package-lock.json"), "utf8");
  const wanted = `${process.platform}-${process.arch}\n${lock}`;
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return 0;
  process.stderr.write("docs: installing the site's generator ...\n");
  const args = ["ci", "--prefix", site, "--ignore-scripts", "--no-audit", "--no-fund"];
  const { code, output } = await supervisor.capture("npm", args);
  if (code !== 0) process.stderr.write(`${output}\nnpm could not install ${site}.\n`);
  else writeFileSync(stamp, wanted);
  return code;
}
