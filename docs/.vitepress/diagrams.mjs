/**
 * Draws docs/images/NAME.dot as NAME.svg beside it. Pictures are committed, so that they are there
 * wherever the pages are read; a build of the site fails while one is not what its text gives.
 *
 * Usage: node diagrams.mjs [--write]
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { instance } from "@viz-js/viz";

const folder = fileURLToPath(new URL("../images/", import.meta.url));
const isWriting = process.argv.includes("--write");
const viz = await instance();

for (const name of readdirSync(folder).filter((one) => one.endsWith(".dot"))) {
  const svg = viz.renderString(readFileSync(`${folder}${name}`, "utf8"), { format: "svg" });
  const path = `${folder}${name.replace(/\.dot$/, ".svg")}`;
  if (isWriting) writeFileSync(path, svg);
  else if (!existsSync(path) || readFileSync(path, "utf8") !== svg) {
    process.stderr.write(`${path} is not what ${name} gives: run npm run docs -- diagrams\n`);
    process.exitCode = 1;
  }
}
