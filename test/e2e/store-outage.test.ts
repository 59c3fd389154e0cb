import { describe, expect, it } from "vitest";
import { noDecisionStatus } from "../support/envoy-config.js";
import { failureModePolicy, failureModes, ModeTraffic } from "../support/failure-modes.js";
import { startHostedGateway, statusOf } from "../support/gateway.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";

const descriptorKeys = failureModes.map((mode) => [mode]);

const wellOutcomes = { local: "200", allow: "200", deny: "200", error: "200" } as const;

const outageOutcomes = {
  local: "200",
  allow: "200",
  deny: "429",
  error: String(noDecisionStatus),
} as const;

const stage = useStage("test");

describe("Redis killed under traffic and brought back", () => {
  it("is answered by each limit's failure mode, in time, and then used again", async () => {
    const redis = await startRedis(stage);
    const gateway = await startHostedGateway(stage, {
      policy: failureModePolicy,
      descriptorKeys,
      headgateEnvs: [redisEnv(redis.port)],
    });
    const [headgate] = gateway.headgates;
    const traffic = new ModeTraffic(stage, (mode, account) =>
      statusOf(gateway.send({ [mode]: account })),
    );
    await traffic.expectFromNowOn(wellOutcomes);

    await redis.kill();
    await traffic.expectNothingBut(outageOutcomes);
    const readiness = await headgate.get("/readyz");
    expect(readiness.status).toBe(200);
    expect(JSON.parse(readiness.body)).toMatchObject({ status: "degraded" });

    await redis.restart();
    await traffic.expectFromNowOn(wellOutcomes);
    expect(JSON.parse((await headgate.get("/readyz")).body)).toMatchObject({ status: "ready" });
  });

  it("still limits by the local share, and lets Envoy decide where told so", async () => {
    const redis = await startRedis(stage);
    const gateway = await startHostedGateway(stage, {
      policy: failureModePolicy,
      descriptorKeys,
      headgateEnvs: [{ ...redisEnv(redis.port), HEADGATE_REPLICAS: "4" }],
      envoy: { withoutDecision: "allow" },
    });
    await redis.kill();
    const call = (): Promise<string> => statusOf(gateway.send({ local: "one-account" }));
    const traffic = Traffic.start(stage, { callersCount: 2, call });
    await waitFor("the share is spent", () => traffic.count("429") >= 100);
    // A quarter of the limit of 100: there may be three more replicas that do the same.
    expect((await traffic.stop()).byOutcome).toEqual({ 200: 25, 429: expect.any(Number) });
    const error = await gateway.send({ error: "one-account" });
    expect(error.status).toBe(200);
    expect(error.headers["x-ratelimit-limit"]).toBeUndefined();
    expect(await gateway.envoy.stat("cluster.upstream.ratelimit.error")).toBeGreaterThan(0);
  });

  it("never waits for the store longer than Envoy waits for the answer", async () => {
    const redis = await startRedis(stage);
    const gateway = await startHostedGateway(stage, {
      policy: failureModePolicy,
      descriptorKeys,
      // Twenty times what Envoy waits: only the time that Envoy states can cut it short.
      headgateEnvs: [{ ...redisEnv(redis.port), HEADGATE_STORE_BUDGET_MS: "10000" }],
      envoy: { timeoutMs: 500 },
    });
    expect((await gateway.send({ deny: "one-account" })).status).toBe(200);
    redis.pause();
    const answer = await gateway.send({ deny: "one-account" });
    expect(answer.status).toBe(429);
    expect(answer.answeredMs - answer.sentMs).toBeLessThan(500);
  });
});
