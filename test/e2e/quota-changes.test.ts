import { readFile, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { adminClients } from "../support/admin.js";
import { freePort } from "../support/free-port.js";
import {
  driveAll,
  limitHz,
  most,
  passedIn,
  reportMs,
  slackMs,
  startScenario,
  wait,
} from "../support/quota-scenario.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

describe("quotas that are changed under load", { timeout: 120_000 }, () => {
  it("follow a policy's edit and an override at once, at every Envoy", async () => {
    const { port } = await startRedis(stage);
    const adminPort = await freePort();
    const admin = { HEADGATE_ADMIN_ADDR: `127.0.0.1:${adminPort}`, HEADGATE_ADMIN_OPEN: "true" };
    const fleet = await startScenario(stage, [{ ...redisEnv(port), ...admin }, redisEnv(port)]);
    const edited = driveAll(fleet, "edited", 25);
    const frozen = driveAll(fleet, "frozen", 25);
    await wait(12_000);
    const { limits } = adminClients(adminPort);
    const entries = [{ key: "tenant", value: "frozen" }];
    const effect = { case: "isFrozen", value: true } as const;
    await limits.setOverride({
      override: { id: "stop", domain: "edge", entries, effect, reason: "a test" },
    });
    for (const { policyPath } of fleet.headgates) {
      const text = await readFile(policyPath, "utf8");
      await writeFile(
        policyPath,
        text.replace(`requests_per_unit: ${limitHz}`, "requests_per_unit: 6"),
      );
    }
    await wait(2_000);
    const [ofEdited, ofFrozen] = await Promise.all([
      passedIn(edited, 10_000),
      passedIn(frozen, 10_000),
    ]);
    // No Envoy waited for its report.
    expect(ofFrozen).toBe(0);
    expect(ofEdited).toBeLessThanOrEqual(most(10_000, 6));
    await limits.deleteOverride({ id: "stop", reason: "it is over", expectedVersion: 1n });
    await wait(reportMs + slackMs);
    expect(await passedIn(frozen, 5_000)).toBeGreaterThan(5);
  });
});
