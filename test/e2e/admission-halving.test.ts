import { mkdir, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { crowdedSlack } from "../support/crowding.js";
import { runOverload } from "../support/overload-run.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

describe("a service with `admission: {}` behind Envoy", () => {
  it("loses half of its workers, and neither critical requests nor what is left", async () => {
    const result = await runOverload(stage, {
      protection: "headgateDefaults",
      multiple: 3,
      // Slow requests and patient callers: a busy machine makes few of them late. A fixed limit of
      // 100 is harmless before the loss, and fails after it: five workers take 2 s for as many.
      meanServiceMs: 100,
      durationMs: 24_000,
      halvedMs: 11_000,
      deadlineMs: 2_000,
      criticalShare: 0.1,
      otherShares: { high: 0.2, normal: 0.4, low: 0.3 },
    });
    await mkdir("test-output", { recursive: true });
    await writeFile("test-output/admission-halving.svg", result.svg);
    const { summary, afterwards } = result;
    if (afterwards === undefined) throw new Error("nothing was lost");
    const critical = afterwards.servedRatioByClass.get("critical") ?? 0;
    process.stdout.write(
      `goodput ${summary.goodputRatio.toFixed(2)} and ${afterwards.goodputRatio.toFixed(2)}, ` +
        `critical ${critical.toFixed(3)}, late ${afterwards.unansweredCount} of ` +
        `${afterwards.requestCount}, p99 ${afterwards.servedP99Ms.toFixed(0)} ms\n`,
    );
    // Shares of what came and of what half of the workers can do: no clock judges.
    const slack = crowdedSlack(result.crowdedRatio, afterwards.lateRatio);
    const unanswered = afterwards.unansweredCount / afterwards.requestCount;
    expect(critical).toBeGreaterThan(0.98 - slack);
    expect(unanswered).toBeLessThanOrEqual(0.01 + slack);
    expect(afterwards.goodputRatio).toBeGreaterThan(0.85 - slack);
    expect(afterwards.withoutRetryAfter).toEqual([]);
  });
});
