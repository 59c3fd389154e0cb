import { describe, expect, it } from "vitest";
import { edgePolicy, rateLimitHeaders, startGateway, statusOf } from "../support/gateway.js";
import type { HeadgateProcess } from "../support/headgate-process.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";

const policy = edgePolicy(`
  - key: account
    rate_limit: {unit: hour, requests_per_unit: 1000000}
`);

const descriptorKeys = [["account"]];

const stage = useStage("test");

describe("SIGTERM under traffic", () => {
  it("fails no request through Envoy, ends with 0, and the other Headgate carries on", async () => {
    const redis = await startRedis(stage);
    const env = { ...redisEnv(redis.port), HEADGATE_DRAIN_DELAY_MS: "1000" };
    const gateway = await startGateway(stage, {
      policy,
      descriptorKeys,
      headgateEnvs: [env, env],
      // Without a decision a request is a 503: nothing that goes wrong is hidden.
      envoy: { isHealthChecked: true, withoutDecision: "deny" },
    });
    const [first, second] = gateway.headgates as readonly [HeadgateProcess, HeadgateProcess];
    const traffic = Traffic.start(stage, {
      callersCount: 8,
      call: () => statusOf(gateway.send({ account: "busy" })),
    });
    await waitFor("both decide", async () => {
      return (await decisions(first)) > 100 && (await decisions(second)) > 100;
    });
    expect(await first.terminate()).toEqual({ code: 0 });
    const before = await decisions(second);
    await waitFor("the other one decides", async () => (await decisions(second)) > before + 200);
    // Back in the turn, and the other one goes: a rollout.
    await first.restart();
    await waitFor("the new one decides", async () => (await decisions(first)) > 100);
    expect(await second.terminate()).toEqual({ code: 0 });
    const { total, byOutcome } = await traffic.stop();
    expect(byOutcome).toEqual({ 200: total });
    expect(await gateway.envoy.stat("cluster.upstream.ratelimit.error")).toBe(0);
  });
});

describe("connections that reach their age under traffic", () => {
  it("are changed for new ones without a failed request", async () => {
    const env = { GRPC_MAX_CONNECTION_AGE: "500ms", GRPC_MAX_CONNECTION_AGE_GRACE: "10s" };
    const gateway = await startGateway(stage, {
      policy,
      descriptorKeys,
      headgateEnvs: [env],
      envoy: { withoutDecision: "deny" },
    });
    const traffic = Traffic.start(stage, {
      callersCount: 4,
      call: () => statusOf(gateway.send({ account: "busy" })),
    });
    const opened = (): Promise<number> => gateway.envoy.stat("cluster.headgate.upstream_cx_total");
    await waitFor("Envoy has opened eight connections", async () => (await opened()) >= 8, {
      withinMs: 30_000,
    });
    const { total, byOutcome } = await traffic.stop();
    expect(byOutcome).toEqual({ 200: total });
  });
});

describe("a Headgate killed behind Envoy", () => {
  it("leaves requests to Envoy's failure mode, and limits again when it is back", async () => {
    const gateway = await startGateway(stage, {
      policy,
      descriptorKeys,
      envoy: { withoutDecision: "allow" },
    });
    const [headgate] = gateway.headgates;
    const isLimited = async (): Promise<boolean> => {
      const answer = await gateway.send({ account: "anyone" });
      expect(answer.status).toBe(200);
      return rateLimitHeaders(answer).limit !== undefined;
    };
    expect(await isLimited()).toBe(true);
    await headgate.process.kill();
    expect(await isLimited()).toBe(false);
    await headgate.restart();
    await waitFor("requests are limited again", isLimited);
  });
});

describe("an Envoy killed under traffic", () => {
  it("leaves no connection behind, and a new Envoy is served", async () => {
    const gateway = await startGateway(stage, { policy, descriptorKeys });
    const [headgate] = gateway.headgates;
    const idleCount = await openSockets(headgate);
    const traffic = Traffic.start(stage, {
      callersCount: 8,
      call: () => statusOf(gateway.send({ account: "busy" })),
    });
    await waitFor("Envoy has asked", async () => (await decisions(headgate)) > 100);
    expect(await openSockets(headgate)).toBeGreaterThan(idleCount);
    await gateway.envoy.kill();
    await traffic.stop();
    await waitFor("its connections are gone", async () => {
      return (await openSockets(headgate)) === idleCount;
    });
    await gateway.envoy.restart();
    expect((await gateway.send({ account: "busy" })).status).toBe(200);
    expect(headgate.process.isRunning).toBe(true);
  });
});

function decisions(headgate: HeadgateProcess): Promise<number> {
  return headgate.metric("headgate_requests_total");
}

/** Connections of every kind, the one that asks included. */
function openSockets(headgate: HeadgateProcess): Promise<number> {
  return headgate.metric("nodejs_active_resources", { type: "TCPSocketWrap" });
}
