import { beforeAll, describe, expect, it } from "vitest";
import { type DropIn, reported, startDropIn } from "../support/drop-in.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { redisEnv, startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";

const policy = `domain: edge
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: other, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: month, rate_limit: {unit: month, requests_per_unit: 10}}
  - {key: day, rate_limit: {unit: day, requests_per_unit: 10}}
  - {key: rare, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: burst, rate_limit: {unit: second, requests_per_unit: 1000}}
`;

const stage = useStage("file");
let main: RedisServer;
let second: RedisServer;
let service: DropIn;

beforeAll(async () => {
  [main, second] = await Promise.all([startRedis(stage), startRedis(stage)]);
  service = await startDropIn(stage, {
    policy,
    env: {
      ...redisEnv(main.port),
      REDIS_PERSECOND: "true",
      REDIS_PERSECOND_URL: `127.0.0.1:${second.port}`,
      CACHE_KEY_PREFIX: "gate:",
      DEBUG_PORT: "0",
    },
  });
});

/** How many keys a Redis holds whose names begin so. */
async function keyCount(server: RedisServer, prefix: string): Promise<number> {
  return (await server.client().keys(`${prefix}*`)).length;
}

function failures({ headgate }: DropIn, code: string): Promise<number> {
  return headgate.metric("headgate_failed_requests_total", { error: code });
}

describe("decisions in place of envoyproxy/ratelimit", () => {
  it("take the descriptor's hits, else the request's, else 1; refunds end at empty", async () => {
    const { askAll } = service;
    expect(await askAll({ descriptors: [["user=a"]] })).toBe("OK: 9/10");
    expect(await askAll({ descriptors: [["user=a"]], hits: 2 })).toBe("OK: 7/10");
    const own = (hits: bigint, isRefund = false) => ({
      descriptors: [{ entries: ["user=a"], hits, isRefund }],
      hits: 9,
    });
    expect(await askAll(own(3n))).toBe("OK: 4/10");
    expect(await askAll(own(0n))).toBe("OK: 4/10");
    expect(await askAll(own(5n))).toBe("OVER: over 0/10");
    expect(await askAll(own(2n, true))).toBe("OK: 1/10");
    expect(await askAll(own(100n, true))).toBe("OK: 10/10");
    expect(await askAll(own(1n))).toBe("OK: 9/10");
  });

  it("are made in one step at Redis; denied hits count where it is asked for", async () => {
    const both = { descriptors: [["user=b"], ["other=b"]], hits: 4 };
    const twice = async ({ askAll }: DropIn): Promise<readonly string[]> => {
      await askAll({ descriptors: [["user=b"]], hits: 8 });
      const denied = await askAll(both);
      return [denied, await askAll({ descriptors: [{ entries: ["other=b"], hits: 0n }] })];
    };
    expect(await twice(service)).toEqual(["OVER: over 0/10, 10/10", "OK: 10/10"]);
    const redis = await startRedis(stage);
    const charging = await startDropIn(stage, {
      policy,
      env: { ...redisEnv(redis.port), HEADGATE_CHARGE_DENIED: "true" },
    });
    expect(await twice(charging)).toEqual(["OVER: over 0/10, 6/10", "OK: 6/10"]);
  });

  it("keep their keys under the prefix; windows begin at whole units since 1970", async () => {
    await service.ask("user=key");
    // Asked once: keys of the fleet come and go between two questions.
    const keys = await main.client().keys("*");
    expect(keys.length).toBeGreaterThan(0);
    expect(keys.filter((key) => !key.startsWith("gate:"))).toEqual([]);

    const redis = await startRedis(stage);
    const windows = await startDropIn(stage, {
      policy,
      env: { ...redisEnv(redis.port), HEADGATE_ALGORITHM: "fixed_window" },
    });
    for (const { key, seconds } of units) {
      const answer = await windows.client.ask({ descriptors: [[`${key}=a`]] });
      expect(reported(answer)).toBe("OK: 9/10");
      const status = answer.kind === "decided" ? answer.response.statuses[0] : undefined;
      const leftSeconds = Number(status?.durationUntilReset?.seconds);
      const wantedSeconds = seconds - ((Date.now() / 1_000) % seconds);
      expect(Math.abs(leftSeconds - wantedSeconds)).toBeLessThan(toleranceSeconds);
    }
  });

  it("keep limits by the second in the second Redis", async () => {
    expect(await service.ask("burst=a")).toBe("OK: 999/1000");
    expect(await keyCount(main, "gate:*burst")).toBe(0);
    expect(await keyCount(second, "gate:*burst")).toBe(1);
    expect(await keyCount(second, "gate:")).toBe(1);
  });

  it("remember who is over and spare Redis the question; keys expire", async () => {
    const { headgate, ask } = service;
    expect(await ask("rare=a")).toBe("OK: 0/1");
    for (let count = 0; count < 3; count += 1) expect(await ask("rare=a")).toBe("OVER: over 0/1");
    expect(await headgate.metric("headgate_over_limit_cache_denials_total")).toBeGreaterThan(0);
    const control = main.client();
    for (const key of await control.keys("gate:*")) {
      // What operators decided is kept.
      if (key.includes("{fleet}:records:")) continue;
      expect(await control.pttl(key)).toBeGreaterThan(0);
    }
  });

  it("are errors without a domain, descriptors, a policy or a store, and are counted", async () => {
    expect(await service.askAll({ domain: "", descriptors: [["user=a"]] })).toBe(
      "INVALID_ARGUMENT",
    );
    expect(await service.askAll({ descriptors: [] })).toBe("INVALID_ARGUMENT");
    expect(await failures(service, "REQUEST_INVALID")).toBe(2);

    const empty = await HostedHeadgate.open(stage, {
      env: { RUNTIME_ROOT: stage.folder, FORCE_START_WITHOUT_INITIAL_CONFIG: "true" },
    });
    const question = { domain: "edge", descriptors: [{ entries: [{ key: "user", value: "a" }] }] };
    const refused = await empty.postJson(question);
    expect([refused.status, JSON.parse(refused.body).code]).toEqual([503, "POLICY_MISSING"]);
    const client = new RlsClient(empty.grpcPort);
    stage.atEnd(() => client.close());
    expect(reported(await client.ask({ descriptors: [["user=a"]] }))).toBe("UNAVAILABLE");

    const redis = await startRedis(stage);
    const failing = await startDropIn(stage, {
      policy,
      env: { ...redisEnv(redis.port), HEADGATE_ON_STORE_FAILURE: "error" },
    });
    expect(await failing.ask("user=a")).toBe("OK: 9/10");
    await redis.kill();
    expect(await failing.ask("user=a")).toBe("UNAVAILABLE");
    expect(await failures(failing, "STORE_UNAVAILABLE")).toBe(1);
  });
});

/** Lengths of windows that envoyproxy/ratelimit counts in: a month is 30 days, a year 365. */
const units = [
  { key: "day", seconds: 86_400 },
  { key: "month", seconds: 30 * 86_400 },
  { key: "user", seconds: 365 * 86_400 },
] as const;

/** Time that may pass between two looks at the clock on a busy machine. */
const toleranceSeconds = 10;
