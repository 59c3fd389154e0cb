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

const stage = useStage("test");

describe("quotas while the store is away", { timeout: 120_000 }, () => {
  it("stay inside the last lease, then deny as told, and are well soon after", async () => {
    const redis = await startRedis(stage);
    const fleet = await startScenario(stage, [redisEnv(redis.port), redisEnv(redis.port)]);
    const all = driveAll(fleet, "a", 20);
    await wait(12_000);
    redis.pause();
    const startMs = performance.now();
    const inside = await passedIn(all, 8_000);
    expect(inside).toBeGreaterThan(0.3 * 8 * limitHz);
    await wait(leaseMs - 8_000 + slackMs);
    expect(await passedIn(all, 3_000)).toBe(0);
    const endMs = performance.now();
    expect(passedBetween(all, startMs, endMs)).toBeLessThanOrEqual(most(leaseMs));
    for (const headgate of fleet.headgates) {
      expect(await headgate.metric("headgate_quota_leases", { state: "lost" })).toBe(1);
      expect(headgate.process.output).toContain('"quotaLeasesUnrenewed"');
      expect(headgate.process.output).toContain('"quotaLeasesLost"');
      expect((await headgate.get("/readyz")).status).toBe(200);
    }
    redis.resume();
    await wait(reportMs + slackMs);
    expect(await passedIn(all, 5_000)).toBeGreaterThan(0.4 * 5 * limitHz);
    for (const headgate of fleet.headgates) {
      expect(headgate.process.output).toContain('"quotaLeasesFound"');
    }
  });
});
