import { describe, expect, it } from "vitest";
import { type EnvoyComparison, envoyCases, runBoth } from "../support/simulated-envoy.js";
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

/** A stall of the machine moves the real programs away from the simulated ones, never to them. */
const runsMax = 3;

const allowedError = 0.05;

function errorOf({ simulated, real }: EnvoyComparison): number {
  const served = Math.abs(simulated.goodputRatio - real.goodputRatio);
  return Math.max(served, Math.abs(simulated.refusedRatio - real.refusedRatio));
}

describe("headgate simulate next to a real Envoy and Headgate", () => {
  it.each(cases)("agrees on what is served: $name", async (one) => {
    const errors: number[] = [];
    while (errors.length < runsMax && Math.min(...errors) >= allowedError) {
      const found = await runBoth(stage, one, { durationMs: 10_000, meanServiceMs: 100 });
      process.stdout.write(`${one.name}: ${JSON.stringify(found)}\n`);
      errors.push(errorOf(found));
    }
    expect(Math.min(...errors)).toBeLessThan(allowedError);
  });
});
