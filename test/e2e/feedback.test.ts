import { mkdir, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { crowdedSlack } from "../support/crowding.js";
import { halvedWorkerCount, runHalved } from "../support/halved-capacity-run.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

describe("a fleet of Envoys whose breakers Headgate sets", () => {
  it("follows when half of the capacity goes, and loses next to nothing", async () => {
    const result = await runHalved(stage, {
      protection: "headgate",
      loadRatio: 1.25,
      // Its limit is found by then; and a probe or two fall into what is measured afterwards.
      halvedMs: 20_000,
      durationMs: 45_000,
    });
    await mkdir("test-output", { recursive: true });
    await writeFile("test-output/feedback-half-capacity.svg", result.svg);
    const { goodputBefore, goodputAfter, followedMs, inFlightAfter, unansweredCount } = result;
    process.stdout.write(
      `goodput ${goodputBefore.toFixed(2)} before, ${goodputAfter.toFixed(2)} after, followed in ` +
        `${followedMs?.toFixed(0)} ms, ${inFlightAfter.toFixed(0)} in flight\n`,
    );
    // Most runs follow within five seconds; the latest are those whose last probe was just over.
    // How many is the simulation's to say: see "follows when half of the servers go" there.
    expect(followedMs).toBeLessThanOrEqual(10_000);
    expect(goodputAfter).toBeGreaterThanOrEqual(0.9 - crowdedSlack(result.crowdedRatio));
    expect(inFlightAfter).toBeLessThan(2 * halvedWorkerCount);
    expect(unansweredCount).toBe(0);
  });
});
