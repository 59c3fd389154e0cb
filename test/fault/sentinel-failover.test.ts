import { describe, expect, it } from "vitest";
import { expectUnharmed, startClient } from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { RedisSentinels } from "../support/redis-sentinels.js";
import { outcomeOf } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const burst = 3_000;

/**
 * Limits that Envoy's own failure mode decides: what is admitted, Redis has admitted. An hour's
 * burst drains by less than one a second, so what is admitted is nearly all that it holds.
 */
const policy = edgePolicy(`
      - key: error
        rate_limit: {unit: hour, requests_per_unit: ${burst}}
        on_store_failure: error`);

describe("sentinels whose primary is killed under load", () => {
  it("heal decisions without a restart, and nothing is admitted above the bound", async () => {
    const group = await RedisSentinels.start();
    stage.atEnd(() => group.stop());
    const env = {
      REDIS_TYPE: "sentinel",
      REDIS_URL: group.url,
      HEADGATE_STORE_BUDGET_MS: "250",
    };
    const headgate = await HostedHeadgate.start(stage, { policy, env });
    const client = startClient(stage, headgate);
    const startMs = performance.now();
    const traffic = Traffic.start(stage, {
      callersCount: 8,
      call: async () => outcomeOf(await client.ask({ descriptors: [["error=one"]] })),
    });
    await waitFor("half of the burst is used", () => traffic.count("OK") > burst / 2, {
      withinMs: 30_000,
    });
    const first = await group.primary();
    await first.kill();
    const admittedBefore = traffic.count("OK");
    await waitFor("the crash is felt", () => traffic.count("UNAVAILABLE") > 0);
    traffic.pauseBetweenCalls(5);
    const isDecided = () => traffic.count("OK") > admittedBefore + 100;
    await waitFor("Redis decides again", isDecided, { withinMs: 60_000 });
    traffic.pauseBetweenCalls(0);
    await waitFor("the burst is used", () => traffic.count("OVER_LIMIT") > 100, {
      withinMs: 60_000,
    });
    const counts = await traffic.stop();
    const elapsedSeconds = (performance.now() - startMs) / 1_000;
    const admitted = counts.byOutcome["OK"] ?? 0;
    // A failover may lose what was not yet copied: at most what was used when it happened.
    const promised = burst + (elapsedSeconds * burst) / 3_600 + 1;
    expect(admitted).toBeLessThanOrEqual(promised + admittedBefore);
    // And what has been copied is not admitted twice: all but the last moment of it.
    expect(admitted).toBeLessThanOrEqual(promised + burst / 4);
    expect(Object.keys(counts.byOutcome).sort()).toEqual(["OK", "OVER_LIMIT", "UNAVAILABLE"]);
    const second = await group.primary();
    expect(second.port).not.toBe(first.port);
    expect(await second.client().dbsize()).toBeGreaterThan(0);
    const ready = JSON.parse((await headgate.get("/readyz")).body);
    expect(ready).toMatchObject({ status: "ready", store: { state: "ok" } });
    await expectUnharmed(headgate);
  });
});
