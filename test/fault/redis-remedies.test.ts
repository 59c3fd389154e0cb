import { describe, expect, it } from "vitest";
import { TestAuthority } from "../support/certificates.js";
import { failureModePolicy, storeBudgetEnv } from "../support/failure-modes.js";
import {
  expectUnharmed,
  faultOutcomes,
  startClient,
  startFaultRig,
  startModeTraffic,
  wellOutcomes,
} from "../support/fault-rig.js";
import { freePort } from "../support/free-port.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { redisEnv, startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { startTlsRedis } from "../support/redis-tls.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** A trouble of Redis that a person has to end, or wait for. */
interface Trouble {
  readonly what: string;
  readonly begin: (redis: RedisServer) => Promise<unknown>;
  readonly code: string;
  /** What the log says to do next. */
  readonly remedy: RegExp;
}

const secret = "pass-of-nobody-73";

/** Makes every connection prove itself anew. */
async function dropAll(redis: RedisServer): Promise<void> {
  await redis.client().call("client", "kill", "type", "normal", "skipme", "yes");
}

const troubles: readonly Trouble[] = [
  {
    what: "another password",
    begin: async (redis) => {
      await redis.client().call("acl", "setuser", "gate", "resetpass", `>${secret}-new`);
      await dropAll(redis);
    },
    code: "STORE_UNAUTHENTICATED",
    remedy: /REDIS_AUTH/,
  },
  {
    what: "no right to our command",
    begin: (redis) => redis.client().call("acl", "setuser", "gate", "-evalsha"),
    code: "STORE_ACCESS_DENIED",
    remedy: /ACL SETUSER/,
  },
  {
    what: "no right to our keys",
    begin: (redis) => redis.client().call("acl", "setuser", "gate", "resetkeys", "~other:*"),
    code: "STORE_ACCESS_DENIED",
    remedy: /ACL SETUSER/,
  },
  {
    what: "no memory",
    begin: (redis) => redis.client().config("SET", "maxmemory", "1"),
    code: "STORE_OUT_OF_MEMORY",
    remedy: /maxmemory/,
  },
  {
    what: "the part of a replica",
    begin: (redis) => redis.client().replicaof("127.0.0.1", 1),
    code: "STORE_READ_ONLY",
    remedy: /primary/,
  },
];

/** The lines of a log that say what to do next. */
function remedies(output: string): readonly { readonly code: string; readonly remedy: string }[] {
  return output.split("\n").flatMap((line) => {
    if (!line.includes('"remedy"')) return [];
    return [JSON.parse(line)];
  });
}

describe("a Redis with", () => {
  it.each(troubles)(
    "$what has its own label, and a line that says what to do",
    async ({ begin, code, remedy }) => {
      const redis = await startRedis(stage);
      const rights = ["on", `>${secret}`, "~headgate:*", "+@all"];
      await redis.client().call("acl", "setuser", "gate", ...rights);
      const env = { ...redisEnv(redis.port), REDIS_AUTH: `gate:${secret}` };
      const { headgate, traffic } = await startFaultRig(stage, env);
      await begin(redis);
      const error = "UNAVAILABLE|FAILED_PRECONDITION";
      await traffic.expectFromNowOn({ ...faultOutcomes, error });
      await waitFor("it has its label", async () => {
        return (await headgate.metric("headgate_store_failures_total", { error: code })) > 0;
      });
      await waitFor("it says what to do", () => {
        return remedies(headgate.process.output).some(
          (line) => line.code === code && remedy.test(line.remedy),
        );
      });
      expect(headgate.process.output).not.toContain(secret);
      await expectUnharmed(headgate);
    },
  );
});

describe("a Redis whose certificate is not trusted", () => {
  it("does not keep the service from starting, and is told apart", async () => {
    const { tlsPort } = await startTlsRedis(stage, { authority: new TestAuthority() });
    const env = { ...redisEnv(tlsPort), REDIS_URL: `rediss://127.0.0.1:${tlsPort}` };
    const headgate = await HeadgateProcess.start(stage, { policy: failureModePolicy, env });
    const ready = await headgate.get("/readyz");
    expect([ready.status, JSON.parse(ready.body).status]).toEqual([200, "degraded"]);
    const traffic = startModeTraffic(stage, startClient(stage, headgate));
    await traffic.expectFromNowOn(faultOutcomes);
    await waitFor("it has its label", async () => {
      const labels = { error: "STORE_TLS_FAILED" };
      return (await headgate.metric("headgate_store_failures_total", labels)) > 0;
    });
    expect(remedies(headgate.process.output)).toContainEqual(
      expect.objectContaining({
        event: "storeAway",
        code: "STORE_TLS_FAILED",
        remedy: expect.stringContaining("REDIS_TLS_CACERT"),
      }),
    );
    await expectUnharmed(headgate);
  });
});

describe("a Redis that is not there at the start", () => {
  it.each([
    ["single", (port: number) => `127.0.0.1:${port}`],
    ["sentinel", (port: number) => `gate,127.0.0.1:${port}`],
    ["cluster", (port: number) => `127.0.0.1:${port}`],
  ])("is done without, and said to be away: %s", async (type, urlOf) => {
    const env = { REDIS_TYPE: type, REDIS_URL: urlOf(await freePort()) };
    const headgate = await HeadgateProcess.start(stage, { policy: failureModePolicy, env });
    const ready = await headgate.get("/readyz");
    expect(ready.status).toBe(200);
    expect(JSON.parse(ready.body)).toMatchObject({
      status: "degraded",
      store: { state: "unavailable" },
    });
    const traffic = startModeTraffic(stage, startClient(stage, headgate));
    await traffic.expectFromNowOn(faultOutcomes);
    await expectUnharmed(headgate);
  });

  it("is used as soon as it is, without a restart", async () => {
    const redis = await startRedis(stage);
    await redis.kill();
    const ignored = { REDIS_POOL_SIZE: "50", REDIS_PIPELINE_LIMIT: "8" };
    const env = { ...storeBudgetEnv, ...redisEnv(redis.port), ...ignored };
    const headgate = await HeadgateProcess.start(stage, { policy: failureModePolicy, env });
    const { output } = headgate.process;
    expect(output).toMatch(/REDIS_POOL_SIZE is accepted and without effect here/);
    expect(output).toMatch(/REDIS_PIPELINE_LIMIT is accepted and without effect here/);
    await redis.restart();
    const isReady = async () => JSON.parse((await headgate.get("/readyz")).body).status === "ready";
    await waitFor("nobody asks, and it is ready", isReady);
    const traffic = startModeTraffic(stage, startClient(stage, headgate));
    await traffic.expectFromNowOn(wellOutcomes);
    await expectUnharmed(headgate);
  });
});
