import { describe, expect, it } from "vitest";
import { storeBudgetEnv } from "../support/failure-modes.js";
import { edgePolicy, startGateway, statusOf } from "../support/gateway.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";

const policy = edgePolicy(`
  - key: account
    rate_limit: {unit: hour, requests_per_unit: 50}
`);

const descriptorKeys = [["account"]];

const stage = useStage("test");

describe("two Headgates on one Redis behind one Envoy", () => {
  it("admit no more than the limit together, and no less", async () => {
    const redis = await startRedis(stage);
    const env = { ...redisEnv(redis.port), ...storeBudgetEnv };
    const headgateEnvs = [env, env];
    const gateway = await startGateway(stage, { policy, descriptorKeys, headgateEnvs });
    const call = (): Promise<string> => statusOf(gateway.send({ account: "shared" }));
    const traffic = Traffic.start(stage, { callersCount: 8, call });
    await waitFor("every hit is taken and some are refused", () => traffic.count("429") >= 200);
    expect((await traffic.stop()).byOutcome).toEqual({ 200: 50, 429: expect.any(Number) });
    // Envoy spreads its questions, so each of them has decided some.
    for (const headgate of gateway.headgates) {
      expect(await headgate.metric("headgate_requests_total", { code: "ok" })).toBeGreaterThan(0);
    }
    expect(await sumOfFallbacks(gateway.headgates)).toBe(0);
  });
});

describe("the health service, asked by Envoy", () => {
  it("takes a stopping Headgate out of the turn, and a new one back in", async () => {
    const redis = await startRedis(stage);
    const env = { ...redisEnv(redis.port), HEADGATE_DRAIN_DELAY_MS: "1000" };
    const gateway = await startGateway(stage, {
      policy,
      descriptorKeys,
      headgateEnvs: [env, env],
      envoy: { isHealthChecked: true },
    });
    const [first] = gateway.headgates;
    const healthyCount = (): Promise<number> =>
      gateway.envoy.stat("cluster.headgate.membership_healthy");
    await waitFor("both are healthy", async () => (await healthyCount()) === 2);
    first.process.signal("SIGTERM");
    await waitFor("one is left while the other still runs", async () => {
      return (await healthyCount()) === 1 && first.process.isRunning;
    });
    expect((await first.process.exited).code).toBe(0);
    await first.restart();
    await waitFor("both are healthy again", async () => (await healthyCount()) === 2);
  });
});

async function sumOfFallbacks(
  headgates: readonly { metric(name: string): Promise<number> }[],
): Promise<number> {
  let sum = 0;
  for (const headgate of headgates)
    sum += await headgate.metric("headgate_fallback_decisions_total");
  return sum;
}
