import { describe, expect, it } from "vitest";
import { crowdedSlack } from "../support/crowding.js";
import { envoyCases, runBoth } from "../support/simulated-envoy.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

/**
 * A limit that is set, and one that is learned. A law that probes now and then does it at another
 * time in each world: with slow requests, one probe would be a large part of so short a run.
 */
const comparedNames: readonly string[] = [
  "3x load, a fixed limit",
  "3x load, half the workers lost",
];
const cases = envoyCases.filter(({ name }) => comparedNames.includes(name));

describe("headgate simulate next to a real Envoy and Headgate", { timeout: 60_000 }, () => {
  it.each(cases)("agrees on what is served: $name", async (one) => {
    const run = { durationMs: 10_000, meanServiceMs: 100 };
    const { simulated, real, crowdedRatio, lateRatio } = await runBoth(stage, one, run);
    process.stdout.write(`${one.name}: ${JSON.stringify({ simulated, real, lateRatio })}\n`);
    const slack = 0.05 + crowdedSlack(crowdedRatio, lateRatio);
    expect(Math.abs(simulated.goodputRatio - real.goodputRatio)).toBeLessThan(slack);
    expect(Math.abs(simulated.refusedRatio - real.refusedRatio)).toBeLessThan(slack);
  });
});
