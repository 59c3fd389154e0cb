import { describe, expect, it } from "vitest";
import { expectUnharmed, startClient } from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { outcomeOf, type RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";

const limitHits = 5;
const newKeysPerSecondMax = 50;
const knownCount = 10;

/** Calls of the flood; each asks for a value that nobody has ever asked for. */
const floodCallsMin = 2_500;

/** What no log line and no metric may hold. */
const madeUp = "made-up-7f3a";

const policy = edgePolicy(`
  - key: user
    rate_limit: {unit: hour, requests_per_unit: ${limitHits}}
    on_store_failure: error
`);

const stage = useStage("test");

async function left(client: RlsClient, value: string): Promise<number> {
  const answer = await client.ask({ descriptors: [[`user=${value}`]] });
  if (answer.kind === "failed") throw new Error(answer.statusName);
  return answer.response.statuses[0]?.limitRemaining ?? 0;
}

describe("a caller who makes up a value for every call", () => {
  it("gets so many buckets a second, shares one for the rest, and harms nobody else", async () => {
    const redis = await startRedis(stage);
    const env = {
      ...redisEnv(redis.port),
      HEADGATE_NEW_KEYS_PER_SECOND_MAX: String(newKeysPerSecondMax),
      LOG_LEVEL: "trace",
    };
    const headgate = await HostedHeadgate.start(stage, { policy, env });
    const client = startClient(stage, headgate);
    const known = Array.from({ length: knownCount }, (_, i) => `known-${i}`);
    for (const value of known) expect(await left(client, value)).toBe(limitHits - 1);
    // The fleet's own keys come by themselves.
    const bucketCount = async (): Promise<number> =>
      (await redis.client().keys("*")).filter((key) => !key.includes("{fleet}")).length;
    const keysBefore = await bucketCount();

    let made = 0;
    const startMs = performance.now();
    const flood = Traffic.start(stage, {
      callersCount: 32,
      call: async () => {
        made += 1;
        return outcomeOf(await client.ask({ descriptors: [[`user=${madeUp}-${made}`]] }));
      },
    });
    await waitFor("the flood has come", () => flood.counts.total >= floodCallsMin, {
      withinMs: 60_000,
    });
    for (const value of known) expect(await left(client, value)).toBe(limitHits - 2);
    const { byOutcome, total } = await flood.stop();
    const elapsedSeconds = (performance.now() - startMs) / 1_000;

    const { OK: okCount = 0, OVER_LIMIT: overCount = 0 } = byOutcome;
    expect(okCount + overCount).toBe(total);
    const shared = { domain: "edge", rule: "user" };
    const sharedCount = await headgate.metric("headgate_overflow_descriptors_total", shared);
    const ownCount = total - sharedCount;
    expect(ownCount).toBeGreaterThanOrEqual(newKeysPerSecondMax - knownCount);
    expect(ownCount).toBeLessThanOrEqual(newKeysPerSecondMax * (Math.ceil(elapsedSeconds) + 1));
    // One key each for those with a bucket of their own, and one for all the others.
    expect((await bucketCount()) - keysBefore).toBe(ownCount + 1);
    // The shared bucket has the limit of one key; it drains less than one hit in these seconds.
    expect(okCount).toBe(ownCount + limitHits);

    const { body } = await headgate.get("/metrics");
    expect(body).toContain("headgate_overflow_descriptors_total");
    expect(body).not.toContain(madeUp);
    expect(headgate.output).not.toContain(madeUp);
    await expectUnharmed(headgate);
  });
});
