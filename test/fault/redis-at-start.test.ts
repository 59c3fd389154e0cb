import { beforeAll, describe, expect, it } from "vitest";
import { TestAuthority } from "../support/certificates.js";
import { failureModePolicy } from "../support/failure-modes.js";
import {
  expectUnharmed,
  faultOutcomes,
  startModeTraffic,
  wellOutcomes,
} from "../support/fault-rig.js";
import { freePort } from "../support/free-port.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { redisEnv, startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { startTlsRedis } from "../support/redis-tls.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

type Env = Readonly<Record<string, string>>;

/** Holds what a URL gives a meaning to. */
const password = "pa:ss@wo/rd-of-redis";
const wrongPassword = "wr:ong@wo/rd-of-nobody";

const stage = useStage("file");

function start(env: Env): Promise<HeadgateProcess> {
  return HeadgateProcess.start(stage, { policy: failureModePolicy, env });
}

describe("a Redis that refuses us at start", () => {
  let redis: RedisServer;

  beforeAll(async () => {
    redis = await startRedis(stage, { args: ["--requirepass", password], password });
    await redis.client().acl("SETUSER", "gate", "on", `>${password}`, "~*", "+@all", "-evalsha");
  });

  // A start takes a while, and none of them has to do with another.
  it.concurrent.each([
    [
      "by a wrong password in the URL",
      () => ({ REDIS_URL: redisUrl("", wrongPassword) }),
      /REDIS_AUTH/,
    ],
    ["by a wrong password in REDIS_AUTH", () => ({ REDIS_AUTH: wrongPassword }), /REDIS_AUTH/],
    ["for want of a password", () => ({}), /REDIS_AUTH/],
    ["by its access list", () => ({ REDIS_URL: redisUrl("gate", password) }), /ACL SETUSER/],
  ])("%s ends the start with 1 and says what to set, but no secret", async (_, envOf, remedy) => {
    const env: Env = { ...redisEnv(redis.port), ...envOf() };
    const headgate = await HeadgateProcess.prepare(stage, { policy: failureModePolicy, env });
    const started = headgate.spawn();
    expect(await within("the start ends", 60_000, started.exited)).toEqual({ code: 1 });
    expect(started.output).toMatch(/refuses the connection/);
    expect(started.output).toMatch(remedy);
    expectNoSecret(started.output);
  });

  function redisUrl(user: string, secret: string): string {
    return `redis://${user}:${encodeURIComponent(secret)}@127.0.0.1:${redis.port}`;
  }
});

/** No part of a password, as it is or as a URL writes it, may be read anywhere. */
function expectNoSecret(output: string): void {
  for (const secret of [password, wrongPassword]) {
    for (const text of [secret, encodeURIComponent(secret), secret.split("@")[1] ?? secret]) {
      expect(output).not.toContain(text);
    }
  }
}

describe("a Redis that cannot be used at the start", () => {
  const types = ["single", "sentinel", "cluster"] as const;
  let redis: RedisServer;
  let away: Readonly<Record<(typeof types)[number], HeadgateProcess>>;
  let untrusted: HeadgateProcess;
  /** Its breaker is closed: nobody asks it while its Redis is away. */
  let unasked: HeadgateProcess;

  // Each of them waits for its Redis before it goes on without, so they wait side by side.
  beforeAll(async () => {
    const { tlsPort } = await startTlsRedis(stage, { authority: new TestAuthority() });
    redis = await startRedis(stage);
    await redis.kill();
    const ignored = { REDIS_POOL_SIZE: "50", REDIS_PIPELINE_LIMIT: "8" };
    const [overTls, quiet, single, sentinel, cluster] = await Promise.all([
      start({ ...redisEnv(tlsPort), REDIS_URL: `rediss://127.0.0.1:${tlsPort}` }),
      start({ ...redisEnv(redis.port), ...ignored }),
      start(redisEnv(redis.port)),
      start({ REDIS_TYPE: "sentinel", REDIS_URL: `gate,127.0.0.1:${await freePort()}` }),
      start({ REDIS_TYPE: "cluster", REDIS_URL: `127.0.0.1:${await freePort()}` }),
    ]);
    untrusted = overTls;
    unasked = quiet;
    away = { single, sentinel, cluster };
  });

  it.concurrent.each(types)(
    "for it is not there, is done without, and said to be away: %s",
    async (type) => {
      const headgate = away[type];
      const ready = await headgate.get("/readyz");
      expect(ready.status).toBe(200);
      expect(JSON.parse(ready.body)).toMatchObject({
        status: "degraded",
        store: { state: "unavailable" },
      });
      await expectDoneWithout(headgate);
      const labels = { mode: "local", error: "STORE_UNAVAILABLE" };
      expect(await headgate.metric("headgate_fallback_decisions_total", labels)).toBeGreaterThan(0);
    },
  );

  it("for its certificate is not trusted, is done without, and told apart", async () => {
    const ready = await untrusted.get("/readyz");
    expect([ready.status, JSON.parse(ready.body).status]).toEqual([200, "degraded"]);
    await expectDoneWithout(untrusted);
    await waitFor("it has its label", async () => {
      const labels = { error: "STORE_TLS_FAILED" };
      return (await untrusted.metric("headgate_store_failures_total", labels)) > 0;
    });
    const said = untrusted.process.output.split("\n").filter((line) => line.includes("storeAway"));
    expect(said.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        code: "STORE_TLS_FAILED",
        remedy: expect.stringContaining("REDIS_TLS_CACERT"),
      }),
    ]);
  });

  it("is used as soon as it can be, without a restart", async () => {
    const headgate = unasked;
    const { output } = headgate.process;
    expect(output).toMatch(/REDIS_POOL_SIZE is accepted and without effect here/);
    expect(output).toMatch(/REDIS_PIPELINE_LIMIT is accepted and without effect here/);
    await redis.restart();
    const isReady = async () => JSON.parse((await headgate.get("/readyz")).body).status === "ready";
    await waitFor("nobody asks, and it is ready", isReady);
    const traffic = startModeTraffic(stage, headgate);
    await traffic.expectFromNowOn(wellOutcomes);
    await traffic.stop();
    await expectUnharmed(headgate);
  });
});

/** Every call is answered by its failure mode. */
async function expectDoneWithout(headgate: HeadgateProcess): Promise<void> {
  const traffic = startModeTraffic(stage, headgate);
  await traffic.expectFromNowOn(faultOutcomes);
  await traffic.stop();
  await expectUnharmed(headgate);
}
