import { describe, expect, it } from "vitest";
import {
  driveAll,
  leaseMs,
  limitHz,
  most,
  passedBetween,
  passedIn,
  reportMs,
  slackMs,
  startScenario,
  wait,
} from "../support/quota-scenario.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

describe("quotas of Envoys and Headgates that die", { timeout: 120_000 }, () => {
  it("stay within their bounds when an Envoy and another one's Headgate are killed", async () => {
    const { port } = await startRedis(stage);
    const fleet = await startScenario(stage, [redisEnv(port), redisEnv(port)]);
    const all = driveAll(fleet, "a", 20);
    await wait(12_000);
    const startMs = performance.now();
    all[0]?.pace(0);
    await Promise.all([fleet.envoys[0]?.kill(), fleet.headgates[1]?.process.kill()]);
    const live = all.slice(1);
    // The other replica's Envoys have what is theirs still; nobody has what the dead had.
    await wait(reportMs + slackMs);
    await waitFor("the Envoy without a Headgate has found the other one", async () => {
      return (await fleet.headgates[0]?.metric("headgate_quota_streams")) === 2;
    });
    await wait(leaseMs);
    expect(await passedIn(live, 5_000)).toBeGreaterThan(0.5 * 5 * limitHz);
    const endMs = performance.now();
    const total = passedBetween(live, startMs, endMs);
    expect(total).toBeLessThanOrEqual(most(endMs - startMs));
    expect(await fleet.headgates[0]?.metric("headgate_bugs_total")).toBe(0);
  });
});
