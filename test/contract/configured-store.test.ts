import { describe, expect, it } from "vitest";
import type { StartFailure } from "../../src/app/failure.js";
import type { OpenStore } from "../../src/app/store.js";
import { once, takeOne, testCharge } from "../support/charges.js";
import { type Env, openConfiguredStore } from "../support/configured-store.js";
import { RedisCluster } from "../support/redis-cluster.js";
import { RedisServer } from "../support/redis-server.js";
import { openTestStore, soon } from "../support/redis-store.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

function open(env: Env): Promise<OpenStore> {
  return openConfiguredStore(stage, env);
}

async function startCluster(): Promise<{ readonly cluster: RedisCluster; readonly url: string }> {
  const cluster = await RedisCluster.start("redis");
  stage.atEnd(() => cluster.stop());
  return { cluster, url: cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join() };
}

async function startServer(): Promise<RedisServer> {
  const server = await RedisServer.start({ engine: "redis" });
  stage.atEnd(() => server.stop());
  return server;
}

describe("openStore()", () => {
  it("opens a cluster and a second Redis, as a user with no more rights than needed", async () => {
    const { cluster, url } = await startCluster();
    const server = await startServer();
    const rights = [
      "on",
      ">pw",
      "~headgate:*",
      "+evalsha",
      "+script|load",
      "+mget",
      "+set",
      "+del",
    ];
    rights.push("+time", "+ping", "+client|setname", "+cluster|slots", "+asking");
    for (const node of [0, 1, 2]) {
      await cluster.control(node).call("acl", "setuser", "gate", ...rights);
    }
    const { store } = await open({
      REDIS_TYPE: "cluster",
      REDIS_URL: url,
      REDIS_AUTH: "gate:pw",
      REDIS_PERSECOND: "true",
      REDIS_PERSECOND_URL: `127.0.0.1:${server.port}`,
    });
    const wide = { burst: 100_000_000, cost: 1_000_000, hits: 1 };
    const charges = Array.from({ length: 20 }, (_, i) => testCharge({ ...wide, key: `k${i}` }));
    const bySecond = testCharge({ ...wide, key: "second", periodUs: 1_000_000 });
    const decided = await takeOne(store, [...charges, bySecond], soon());
    expect(decided.isDenied).toBe(false);
    expect(await server.client().keys("*")).toEqual(["headgate:second"]);
    const held = await Promise.all([0, 1, 2].map((node) => cluster.control(node).dbsize()));
    expect(held.reduce((sum, count) => sum + count)).toBe(20);
    expect(Math.min(...held)).toBeGreaterThan(0);
  });

  it("does not start where a node refuses our password, and says so without it", async () => {
    const { cluster, url } = await startCluster();
    for (const node of [0, 1, 2]) await cluster.control(node).config("SET", "requirepass", "real");
    const env = { REDIS_TYPE: "cluster", REDIS_URL: url, REDIS_AUTH: "hunter2" };
    const failure: StartFailure = await open(env).then(
      () => Promise.reject(new Error("it started")),
      (thrown) => thrown,
    );
    expect(failure.message).toContain("refuses us");
    expect(failure.message).not.toContain("hunter2");
  });

  it("starts where no cluster answers, and fails calls until one does", async () => {
    const { store } = await open({ REDIS_TYPE: "cluster", REDIS_URL: "127.0.0.1:1" });
    await expect(store.take([once(testCharge())], soon())).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
    });
  });
});

describe("RedisConnection", () => {
  it("sends what one turn asks for in one write: a batch is a script a hash tag", async () => {
    const server = await startServer();
    const { store } = await openTestStore(server);
    stage.atEnd(() => store.close());
    const control = server.client();
    const readCount = async (): Promise<number> => {
      const stats = await control.info("stats");
      return Number(/total_reads_processed:(\d+)/.exec(stats)?.[1]);
    };
    const beforeCount = await readCount();
    const keys = Array.from({ length: 40 }, (_, i) => `k${i}`);
    await Promise.all(keys.map((key) => takeOne(store, [testCharge({ key })], soon())));
    // The second look is a read, too.
    expect((await readCount()) - beforeCount).toBe(2);
  });
});
