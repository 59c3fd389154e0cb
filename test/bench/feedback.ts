import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type HalvedResult, runHalved } from "../support/halved-capacity-run.js";
import { Stage } from "../support/stage.js";
import { layOut } from "./report.js";

/** Where the pictures go. */
const pictureFolder = "test-output";

/** Somewhat more than the upstream can serve, so that each of them has to find its limit first. */
const loadRatio = 1.25;

/** For which it is whole. */
const halvedMs = 25_000;

const protections = ["staticBreakers", "adaptiveConcurrency", "headgate"] as const;

/**
 * Two Envoys before an upstream that loses half of its workers, by who sets their limits: one
 * table, and a picture of each run. With Headgate there are two of it, and Redis.
 */
export async function tellFeedback(afterMs: number): Promise<string> {
  const results: HalvedResult[] = [];
  await mkdir(pictureFolder, { recursive: true });
  for (const protection of protections) {
    process.stderr.write(`${protection} ...\n`);
    const stage = new Stage();
    await stage.open();
    try {
      const durationMs = halvedMs + afterMs;
      const result = await runHalved(stage, { protection, loadRatio, halvedMs, durationMs });
      results.push(result);
      await writeFile(join(pictureFolder, `feedback-${protection}.svg`), result.svg);
    } finally {
      await stage.close();
    }
  }
  return layOut([head, ...results.map(rowOf)]);
}

const head = [
  "half of the workers go",
  "goodput before",
  "in the first 5 s",
  "from then on",
  "latency",
  "in flight",
  "followed in",
  "unanswered",
];

function rowOf(result: HalvedResult): readonly string[] {
  const { order, followedMs, servedMs, inFlightAfter } = result;
  return [
    order.protection,
    percent(result.goodputBefore),
    percent(result.goodputBetween),
    percent(result.goodputAfter),
    `${Math.round(servedMs)} ms`,
    `${Math.round(inFlightAfter)}`,
    followedMs === undefined ? "never" : `${(followedMs / 1_000).toFixed(1)} s`,
    String(result.unansweredCount),
  ];
}

function percent(ratio: number): string {
  return `${Math.round(100 * ratio)}%`;
}
