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
  // Tests run the sources, and a thread does not inherit what loads TypeScript.
  const url = ownFile(`${module}.ts`);
  const loader = `import("tsx/esm/api").then(({ register }) => (register(), import("${url}")))`;
  return new Worker(loader, { ...common, eval: true });
}
