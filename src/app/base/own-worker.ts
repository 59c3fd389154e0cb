import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { ownFile } from "./own-file.js";

/**
 * Starts a thread that runs a module of this program.
 *
 * @param module its path without an ending, such as `app/policy/policy-worker`
 */
export function startOwnWorker(
  module: string,
  { workerData, limitMegabytes }: { readonly workerData: unknown; readonly limitMegabytes: number },
): Worker {
  // It needs no environment, and the environment holds secrets.
  const resourceLimits = { maxOldGenerationSizeMb: limitMegabytes };
  const common = { workerData, env: {}, execArgv: [], resourceLimits };
  const built = ownFile(`${module}.js`);
  if (built !== undefined) return new Worker(built, common);
  return new Worker(bundlingLoader(ownFile(`${module}.ts`)?.href ?? ""), { ...common, eval: true });
}

/**
 * Tests run the sources, and a thread does not inherit what loads TypeScript. It bundles them into
 * one file, which takes a third of what it takes to translate each module by itself.
 */
function bundlingLoader(url: string): string {
  const options = {
    entryPoints: [fileURLToPath(url)],
    bundle: true,
    platform: "node",
    format: "esm",
    define: { "import.meta.url": JSON.stringify(url) },
    banner: {
      js: `import { createRequire } from "module"; const require = createRequire("${url}");`,
    },
  };
  // What was bundled since this process began is of the sources that it runs. Whole for whoever
  // reads it: other threads bundle the same.
  return `
const { renameSync, statSync } = require("node:fs");
const { resolve } = require("node:path");
const file = resolve("node_modules/.cache/threads/${basename(url, ".ts")}.mjs");
const outfile = file + "." + process.pid + "." + require("node:worker_threads").threadId;
const madeMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
if (madeMs < ${performance.timeOrigin}) {
  require("esbuild").buildSync({ ...${JSON.stringify(options)}, outfile });
  renameSync(outfile, file);
}
import(file);`;
}
