import { describe, expect, it } from "vitest";
import { noDecisionStatus } from "../support/envoy-config.js";
import { edgePolicy, type Gateway, startGateway, statusOf } from "../support/gateway.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";

const modes = ["local", "allow", "deny", "error"] as const;
type Mode = (typeof modes)[number];

const policy = edgePolicy(
  modes
    .map(
      (mode) => `
  - key: ${mode}
    rate_limit: {unit: hour, requests_per_unit: 100}
    on_store_failure: ${mode}`,
    )
    .join(""),
);

/** The store's budget and ten times the 5 ms that the promise leaves for everything else. */
const answerMsMax = 10 + 10 * 5;

/** Ten times the second in which a store that is back must be used again. */
const recoveryMsMax = 10_000;

/** Answers that show how an outage is answered. */
const outageAnswersMin = 200;

const stage = useStage("test");

/** Traffic of every failure mode at once; each caller asks for an account of its own. */
function startTraffic(gateway: Gateway): Readonly<Record<Mode, Traffic>> {
  const of = (mode: Mode): Traffic => {
    let asked = 0;
    const call = (): Promise<string> => {
      // A new account for every ten requests: a limit of 100 is then never the reason.
      const account = `account-${Math.floor(asked / 10)}`;
      asked += 1;
      return statusOf(gateway.send({ [mode]: account }));
    };
    return new Traffic({ callersCount: 1, call });
  };
  return { local: of("local"), allow: of("allow"), deny: of("deny"), error: of("error") };
}

describe("Redis killed under traffic and brought back", () => {
  it("is answered by each limit's failure mode, in time, and then used again", async () => {
    const redis = await startRedis(stage);
    const gateway = await startGateway(stage, {
      policy,
      descriptorKeys: modes.map((mode) => [mode]),
      headgateEnvs: [redisEnv(redis.port)],
    });
    const traffic = startTraffic(gateway);
    await waitFor("all are well", () => modes.every((mode) => traffic[mode].count("200") > 50));
    for (const mode of modes) {
      const { byOutcome } = traffic[mode].beginPhase();
      expect({ mode, byOutcome }).toEqual({ mode, byOutcome: { 200: expect.any(Number) } });
    }

    await redis.kill();
    // Calls under way at the kill may still have been decided by Redis.
    for (const mode of modes) traffic[mode].beginPhase();
    const total = (mode: Mode): number => traffic[mode].counts.total;
    await waitFor("many were answered without Redis", () =>
      modes.every((mode) => total(mode) >= outageAnswersMin),
    );
    for (const [mode, outcome] of outageOutcomes) {
      const { byOutcome, slowestMs, p99Ms } = traffic[mode].beginPhase();
      expect({ mode, byOutcome }).toEqual({ mode, byOutcome: { [outcome]: expect.any(Number) } });
      expect(p99Ms).toBeLessThan(answerMsMax);
      expect(slowestMs).toBeLessThan(hangMs);
    }
    const [headgate] = gateway.headgates;
    expect((await headgate.get("/readyz")).status).toBe(200);
    expect(JSON.parse((await headgate.get("/readyz")).body)).toMatchObject({ status: "degraded" });

    await redis.restart();
    const isWell = (mode: Mode): boolean => traffic[mode].count("200") > 50;
    for (const mode of modes) traffic[mode].beginPhase();
    await waitFor("all are well again", () => modes.every(isWell), { withinMs: recoveryMsMax });
    for (const mode of modes) traffic[mode].beginPhase();
    await waitFor("all stay well", () => modes.every(isWell));
    for (const mode of modes) {
      const { byOutcome } = await traffic[mode].stop();
      expect({ mode, byOutcome }).toEqual({ mode, byOutcome: { 200: expect.any(Number) } });
    }
    expect(JSON.parse((await headgate.get("/readyz")).body)).toMatchObject({ status: "ready" });
  });

  it("still limits those who answer by themselves, and lets Envoy decide where told so", async () => {
    const redis = await startRedis(stage);
    const gateway = await startGateway(stage, {
      policy,
      descriptorKeys: modes.map((mode) => [mode]),
      headgateEnvs: [{ ...redisEnv(redis.port), HEADGATE_REPLICAS: "4" }],
      envoy: { withoutDecision: "allow" },
    });
    await redis.kill();
    const call = (): Promise<string> => statusOf(gateway.send({ local: "one-account" }));
    const traffic = new Traffic({ callersCount: 2, call });
    await waitFor("the share is spent", () => traffic.count("429") >= outageAnswersMin);
    // A quarter of the limit of 100: there may be three more replicas that do the same.
    expect((await traffic.stop()).byOutcome).toEqual({ 200: 25, 429: expect.any(Number) });
    const error = await gateway.send({ error: "one-account" });
    expect(error.status).toBe(200);
    expect(error.headers["x-ratelimit-limit"]).toBeUndefined();
    expect(await gateway.envoy.stat("cluster.upstream.ratelimit.error")).toBeGreaterThan(0);
  });
});

const outageOutcomes: readonly (readonly [Mode, string])[] = [
  ["local", "200"],
  ["allow", "200"],
  ["deny", "429"],
  ["error", String(noDecisionStatus)],
];

/** A call this slow waited for something that the promise says nobody waits for. */
const hangMs = 1_000;
