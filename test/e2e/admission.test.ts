import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { crowdedSlack } from "../support/crowding.js";
import {
  type OverloadOrder,
  type OverloadResult,
  overloadTable,
  runOverload,
} from "../support/overload-run.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");

/** Where pictures of the runs lie afterwards. */
const pictureFolder = "test-output";

/** Runs it, and keeps a picture of it. */
async function run(order: OverloadOrder): Promise<OverloadResult> {
  const result = await runOverload(stage, order);
  const { protection, multiple, retries = "none" } = order;
  await mkdir(pictureFolder, { recursive: true });
  const name = `admission-${protection}-${multiple}x-${retries}.svg`;
  await writeFile(join(pictureFolder, name), result.svg);
  process.stdout.write(`${overloadTable([result])}\n`);
  return result;
}

/** By how much bounds are lower on a machine that does other work, too. */
function slackOf({ crowdedRatio, summary }: OverloadResult): number {
  return crowdedSlack(crowdedRatio, summary.lateRatio);
}

describe("an upstream under more load than it can bear", () => {
  // One of these and its neighbour make less load together than the one at ten times alone.
  it.concurrent("serves next to nobody in time where nothing protects it", async () => {
    const { summary } = await run({
      protection: "none",
      multiple: 3,
      meanServiceMs: 200,
      durationMs: 8_000,
    });
    expect(summary.goodputRatio).toBeLessThan(0.5);
  });

  it.concurrent("keeps its goodput behind Headgate at 3 times its capacity", () => {
    return expectGoodput(3);
  });

  it("keeps its goodput behind Headgate at 10 times its capacity", () => expectGoodput(10));

  it.each(["budget", "istio"] as const)(
    "is not asked again and again by callers that retry (%s)",
    async (retries) => {
      const result = await run({
        protection: "headgate",
        multiple: 3,
        meanServiceMs: 100,
        durationMs: 10_000,
        retries,
      });
      expect(result.attemptsPerRequest).toBeLessThanOrEqual(1.2);
      expect(result.summary.goodputRatio).toBeGreaterThan(0.85 - slackOf(result));
    },
  );
});

async function expectGoodput(multiple: number): Promise<void> {
  // A share of few requests says more of chance than of what protects the upstream.
  const meanServiceMs = multiple > 3 ? 200 : 100;
  const result = await run({
    protection: "headgate",
    multiple,
    meanServiceMs,
    durationMs: 11_000,
    // More than a hundred of them count, so that a single one that is refused is less than 1 %.
    criticalShare: (multiple > 3 ? 0.3 : 0.2) / multiple,
  });
  const { summary } = result;
  expect(summary.goodputRatio).toBeGreaterThan(0.85 - slackOf(result));
  const critical = summary.servedRatioByClass.get("critical");
  expect(critical).toBeGreaterThan(0.99 - slackOf(result));
  expect(summary.refusedCount).toBeGreaterThan(summary.requestCount / 3);
  expect(summary.withoutRetryAfter).toEqual([]);
}
