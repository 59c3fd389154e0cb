import { describe, expect, it } from "vitest";
import type { LayersCounts } from "../../src/demo/three-layers/layers-counts.js";
import type { Layers } from "../../src/demo/three-layers/layers-settings.js";
import { layersConditions, runCondition } from "../support/layers-conditions.js";
import { LayersDemo } from "../support/layers-demo.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

const measureMs = 5_000;

/** What holds of any run, however busy the machine is. */
function expectSound({ caller, service }: LayersCounts): void {
  expect(caller.served + caller.refused + caller.refusedHere + caller.late).toBeLessThanOrEqual(
    caller.requests,
  );
  expect(caller.servedCritical).toBeLessThanOrEqual(caller.critical);
  expect(service.wastedMs).toBeLessThanOrEqual(service.busyMs);
  expect(service.busyMs).toBeLessThanOrEqual(service.capacityMs);
  // Nobody is served by work that was not done, but for the rounding of sums.
  expect(caller.servedWorkMs).toBeLessThanOrEqual(service.busyMs - service.wastedMs + 0.001);
}

describe("three layers with a real Envoy", () => {
  // How much is served is judged in virtual time and by the bench: here is what must be so on a
  // machine of any speed.
  it("serve with all of them what is not served without", async () => {
    const beganMs = performance.now();
    const demo = await LayersDemo.start(stage, "--quiet-traffic");
    const figuresAt = async (name: string, layers: Layers) => {
      const condition = layersConditions.find((one) => one.name === name);
      if (condition === undefined) throw new Error(`no condition ${name}`);
      await demo.change({ layers });
      const figures = await runCondition(demo, { condition, measureMs });
      expectSound(await demo.counts());
      return figures;
    };
    const all = { client: true, proxy: true, server: true };
    const none = { client: false, proxy: false, server: false };
    const protectedBy3 = await figuresAt("3x", all);
    const stormBy3 = await figuresAt("retry storm", all);
    // The budget of retries is exact: a tenth of what was served, one a second, and at the start
    // what ten seconds bring.
    const { caller } = await demo.counts();
    const seconds = (performance.now() - beganMs) / 1_000;
    const retriesMax = 0.1 * caller.served + seconds + 10;
    expect(caller.attempts).toBeLessThanOrEqual(caller.requests + retriesMax);
    expect(protectedBy3.criticalRatio).toBeGreaterThanOrEqual(
      protectedBy3.served / protectedBy3.requests,
    );
    const bare = await figuresAt("3x", none);
    const bareStorm = await figuresAt("retry storm", none);
    expect(protectedBy3.served).toBeGreaterThan(bare.served);
    expect(protectedBy3.attemptsPerRequest).toBeLessThan(bare.attemptsPerRequest);
    expect(protectedBy3.wastedRatio).toBeLessThan(bare.wastedRatio);
    expect(stormBy3.served).toBeGreaterThan(bareStorm.served);
    expect(stormBy3.wastedRatio).toBeLessThan(bareStorm.wastedRatio);
  });
});
