import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type OverloadOrder,
  type OverloadResult,
  overloadTable,
  runOverload,
} from "../support/overload-run.js";
import { Stage } from "../support/stage.js";
import { layOut } from "./report.js";

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

/** What is compared where runs are repeated: nobody there is told the number but a breaker. */
const numberless = [
  "headgateDefaults",
  "headgateQueue",
  "loopOnly",
  "staticBreaker",
  "adaptiveConcurrency",
  "admissionControl",
] as const;

/** Load, and how often it is run. */
export interface RepeatedOrder {
  /** In multiples of the upstream's capacity. */
  readonly multiples: readonly number[];
  readonly repeatCount: number;
  readonly durationMs: number;
}

/**
 * The same by each protection that is told no number, next to a static breaker that is, several
 * times: one row a run, and of each protection the worst of all its runs.
 */
export async function tellRepeatedOverload(order: RepeatedOrder): Promise<string> {
  const { multiples, repeatCount, durationMs } = order;
  const results: OverloadResult[] = [];
  await mkdir(pictureFolder, { recursive: true });
  for (const multiple of multiples) {
    for (const protection of numberless) {
      for (let seed = 1; seed <= repeatCount; seed += 1) {
        process.stderr.write(`${protection}, ${multiple} times capacity, run ${seed} ...\n`);
        const run = { protection, multiple, durationMs, meanServiceMs, seed, ...usualCallers };
        const stage = new Stage();
        await stage.open();
        try {
          const result = await runOverload(stage, run);
          results.push(result);
          const name = `overload-${protection}-${multiple}x-run-${seed}.svg`;
          await writeFile(join(pictureFolder, name), result.svg);
        } finally {
          await stage.close();
        }
      }
    }
  }
  return `${overloadTable(results)}\n\nThe worst of the runs of each:\n${worstTable(results)}`;
}

/** Callers who wait for a second, and tell four classes apart. */
const usualCallers = {
  criticalShare: 0.1,
  otherShares: { high: 0.2, normal: 0.4, low: 0.3 },
  deadlineMs: 1_000,
} as const;

function worstTable(results: readonly OverloadResult[]): string {
  const groups = new Map<string, OverloadResult[]>();
  for (const result of results) {
    const key = `${result.order.protection} ${result.order.multiple}x`;
    groups.set(key, [...(groups.get(key) ?? []), result]);
  }
  const rows = [...groups].map(([key, runs]) => {
    const summaries = runs.map(({ summary }) => summary);
    const goodput = Math.min(...summaries.map(({ goodputRatio }) => goodputRatio));
    const p99Ms = Math.max(...summaries.map(({ servedP99Ms }) => servedP99Ms));
    const critical = Math.min(
      ...summaries.map(({ servedRatioByClass }) => servedRatioByClass.get("critical") ?? 0),
    );
    const unanswered = Math.max(...summaries.map(({ unansweredCount }) => unansweredCount));
    return [
      key,
      `${(100 * goodput).toFixed(1)} %`,
      `${Math.round(p99Ms)} ms`,
      `${(100 * critical).toFixed(1)} %`,
      String(unanswered),
    ];
  });
  return layOut([["protection", "goodput", "p99", "critical", "unanswered"], ...rows]);
}

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
