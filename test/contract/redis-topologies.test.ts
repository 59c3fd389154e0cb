import { describe, expect, it } from "vitest";
import type { OpenStore } from "../../src/app/store/open-store.js";
import { isServiceError } from "../../src/core/base/errors.js";
import { connectMsMin } from "../../src/store/redis/library-options.js";
import { TestAuthority } from "../support/certificates.js";
import { once, testCharge } from "../support/charges.js";
import { type Env, openConfiguredStore } from "../support/configured-store.js";
import { realRandom } from "../support/real-clock.js";
import { startRedis } from "../support/redis.js";
import { RedisCluster } from "../support/redis-cluster.js";
import { RedisSentinels } from "../support/redis-sentinels.js";
import { soon } from "../support/redis-store.js";
import { startTlsRedis } from "../support/redis-tls.js";
import { useStage } from "../support/stage.js";
import { TcpFaultProxy } from "../support/tcp-fault-proxy.js";
import { waitFor, within } from "../support/wait.js";

// Each has servers of its own, and waits for them more than it works: they run side by side.
const stage = useStage("file");

function open(env: Env): Promise<OpenStore> {
  return openConfiguredStore(stage, env);
}

/** So wide that nothing drains while a test looks. */
const wide = { burst: 100_000_000, cost: 1_000_000, hits: 1 };
const bySecond = testCharge({ ...wide, key: "s", periodUs: 1_000_000 });
const byMinute = testCharge({ ...wide, key: "m", periodUs: 60_000_000 });

async function chargeBoth({ store }: OpenStore): Promise<void> {
  const outcomes = await store.take([once(bySecond), once(byMinute)], soon());
  expect(outcomes.map(({ kind }) => kind)).toEqual(["decided", "decided"]);
}

describe.concurrent("a second Redis", () => {
  it("may be behind sentinels, beside a first one that is not", async () => {
    const first = await startRedis(stage);
    const group = await RedisSentinels.start({
      password: "hunter-1",
      sentinelPassword: "hunter-2",
    });
    stage.atEnd(() => group.stop());
    const opened = await open({
      REDIS_URL: `127.0.0.1:${first.port}`,
      REDIS_PERSECOND: "true",
      REDIS_PERSECOND_TYPE: "SENTINEL",
      REDIS_PERSECOND_URL: group.url,
      REDIS_PERSECOND_AUTH: "hunter-1",
      REDIS_PERSECOND_SENTINEL_AUTH: "hunter-2",
    });
    await chargeBoth(opened);
    expect(await first.client().keys("*")).toEqual(["headgate:m"]);
    expect(await (await group.primary()).client().keys("*")).toEqual(["headgate:s"]);
    expect(opened.kind === "redis" && opened.isAway()).toBe(false);
    await first.kill();
    await waitFor("one of the two is away", () => opened.kind === "redis" && opened.isAway());
  });

  it("may be behind a Unix socket, as an ACL user", async () => {
    const first = await startRedis(stage);
    const second = await startRedis(stage);
    const rights = ["on", ">p:w@73", "~headgate:*", "+@all"];
    await second.client().call("acl", "setuser", "gate", ...rights);
    const opened = await open({
      REDIS_URL: `127.0.0.1:${first.port}`,
      REDIS_PERSECOND: "true",
      REDIS_PERSECOND_SOCKET_TYPE: "unix",
      REDIS_PERSECOND_URL: second.socketPath,
      REDIS_PERSECOND_AUTH: "gate:p:w@73",
    });
    await chargeBoth(opened);
    expect(await second.client().keys("*")).toEqual(["headgate:s"]);
  });
});

describe.concurrent("a cluster whose nodes announce other addresses", () => {
  it("is reached at those, and nowhere else", async () => {
    const cluster = await RedisCluster.start("redis");
    stage.atEnd(() => cluster.stop());
    const proxies: TcpFaultProxy[] = [];
    for (const [i, { port }] of cluster.nodes.entries()) {
      const proxy = await TcpFaultProxy.start(stage, { targetPort: port, random: realRandom });
      proxies.push(proxy);
      await cluster.control(i).config("SET", "cluster-announce-port", String(proxy.port));
    }
    await waitFor("all nodes know them", async () => {
      const reported = await Promise.all([0, 1, 2].map((i) => cluster.control(i).cluster("SLOTS")));
      return proxies.every(({ port }) =>
        reported.every((one) => JSON.stringify(one).includes(`${port}`)),
      );
    });
    const opened = await open({
      REDIS_TYPE: "cluster",
      REDIS_URL: `127.0.0.1:${proxies[0]?.port}`,
    });
    const keys = Array.from({ length: 30 }, (_, i) => once(testCharge({ ...wide, key: `k${i}` })));
    const outcomes = await opened.store.take(keys, soon());
    expect(outcomes.filter(({ kind }) => kind !== "decided")).toEqual([]);
    expect(Math.min(...proxies.map(({ linkCount }) => linkCount))).toBeGreaterThan(0);
    const list = await Promise.all([0, 1, 2].map((n) => cluster.control(n).call("client", "list")));
    const direct = String(list)
      .split("\n")
      .filter((line) => line.includes("name=headgate"));
    expect(direct.length).toBe(proxies.reduce((sum, { linkCount }) => sum + linkCount, 0));
  });
});

describe.concurrent("REDIS_TIMEOUT", () => {
  it("shortens a call whose deadline is later", async () => {
    const server = await startRedis(stage);
    const timeoutMs = 40;
    const opened = await open({
      REDIS_URL: `127.0.0.1:${server.port}`,
      REDIS_TIMEOUT: `${timeoutMs}ms`,
    });
    await waitFor("it is well", async () => {
      const outcomes = await opened.store.take([once(byMinute)], soon()).catch(() => []);
      return outcomes.length === 1;
    });
    server.pause();
    const answer = opened.store.take([once(byMinute)], soon());
    // Timers fire in their order, also where the machine has no time for either.
    const inTime = within("it is answered", 2 * timeoutMs, answer);
    await expect(inTime).rejects.toMatchObject({ code: "STORE_TIMEOUT" });
    server.resume();
  });

  it("leaves a connect the time that a handshake takes", async () => {
    const timeoutMs = 20;
    const latencyMs = 50;
    expect(connectMsMin).toBeGreaterThan(latencyMs);
    const { tlsPort } = await startTlsRedis(stage, { authority: new TestAuthority() });
    const link = { targetPort: tlsPort, random: realRandom };
    const proxy = await TcpFaultProxy.start(stage, link);
    proxy.setFault({ kind: "slow", latencyMs, jitterMs: 0 });
    const opened = await open({
      REDIS_URL: `rediss://127.0.0.1:${proxy.port}`,
      REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: "true",
      REDIS_TIMEOUT: `${timeoutMs}ms`,
    });
    // The certificate is a stranger's, which only somebody sees who has waited for it.
    await waitFor("it is seen", async () => {
      const thrown: unknown = await opened.store.take([once(byMinute)], soon()).catch((e) => e);
      const isReported = String(thrown).includes("not signed by a trusted CA");
      return isReported && isServiceError(thrown) && thrown.code === "STORE_TLS_FAILED";
    });
  });
});
