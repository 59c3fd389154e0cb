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
  // The thread needs no environment, and the environment contains secrets.
  const resourceLimits = { maxOldGenerationSizeMb: limitMegabytes };
  const common = { workerData, env: {}, execArgv: [], resourceLimits };
  const built = ownFile(`${module}.js`);
  if (built !== undefined) return new Worker(built, common);
  return new Worker(bundlingLoader(ownFile(`${module}.ts`)?.href ?? ""), { ...common, eval: true });
}

/**
 * Returns a loader for tests: they run the sources, and a thread does not inherit the TypeScript
 * loader. Bundling into one file takes a third of the time of translating each module.
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
  // A bundle made since this process began is up to date with the sources that the process runs. It
  // is renamed when complete, because other threads create and read the same bundle.
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
