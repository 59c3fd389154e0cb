import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type OverloadOrder,
  type OverloadResult,
  overloadTable,
  runOverload,
} from "../support/overload-run.js";
import { Stage } from "../support/stage.js";

/** Where the pictures go. */
const pictureFolder = "test-output";

/** Mean service time of ten workers: 200 requests a second. */
const meanServiceMs = 50;

const protections = ["none", "staticBreaker", "adaptiveConcurrency", "headgate"] as const;

/** Without retries by every protection, then with those that callers' Envoys make. */
const runs: readonly Pick<OverloadOrder, "protection" | "multiple" | "retries">[] = [
  ...[3, 10].flatMap((multiple) => protections.map((protection) => ({ protection, multiple }))),
  ...(["budget", "istio"] as const).flatMap((retries) =>
    protections.map((protection) => ({ protection, multiple: 3, retries })),
  ),
];

/**
 * An upstream of known capacity under several times its load behind a real Envoy, by what protects
 * it: one table, and a picture of each run.
 */
export async function tellOverload(durationMs: number): Promise<string> {
  const results: OverloadResult[] = [];
  await mkdir(pictureFolder, { recursive: true });
  for (const run of runs) {
    const { protection, multiple, retries = "none" } = run;
    process.stderr.write(`${protection}, ${multiple} times capacity, retries: ${retries} ...\n`);
    const stage = new Stage();
    await stage.open();
    try {
      const result = await runOverload(stage, { ...run, durationMs, meanServiceMs });
      results.push(result);
      const name = `overload-${protection}-${multiple}x-${retries}.svg`;
      await writeFile(join(pictureFolder, name), result.svg);
    } finally {
      await stage.close();
    }
  }
  return overloadTable(results);
}
