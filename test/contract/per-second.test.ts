import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Charge, unitsPerHit } from "../../src/core/bucket.js";
import { openRedis } from "../../src/store/redis/connections.js";
import { createRedisStore } from "../../src/store/redis/split-redis.js";
import { once, takeOne, testCharge, testKey } from "../support/charges.js";
import { openClusterStore, testTagCount } from "../support/cluster-store.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { RedisCluster } from "../support/redis-cluster.js";
import { RedisServer } from "../support/redis-server.js";
import { loopbackTarget, openTestStore, soon } from "../support/redis-store.js";
import { waitFor } from "../support/wait.js";
import { describeLimitStore } from "./limit-store.js";

async function openPair(
  main: Pick<RedisServer, "port">,
  perSecond: Pick<RedisServer, "port">,
): Promise<ReturnType<typeof createRedisStore>> {
  const side = ({ port }: Pick<RedisServer, "port">) => ({
    connections: openRedis({
      target: loopbackTarget(port),
      clock: realClock,
      random: realRandom,
      onEvent: () => {},
    }),
  });
  const store = createRedisStore({
    main: side(main),
    perSecond: side(perSecond),
    keyPrefix: "headgate:",
    onBadBuckets: () => {},
    clock: realClock,
  });
  await store.verify(soon());
  return store;
}

describeLimitStore("SplitStore on two Redis servers", async () => {
  const main = await RedisServer.start({ engine: "redis" });
  const perSecond = await RedisServer.start({ engine: "redis" });
  const store = await openPair(main, perSecond);
  const stop = () => store.close().then(() => Promise.all([main.stop(), perSecond.stop()]));
  return { store, soon, isSplit: true, stop: () => stop().then(() => {}) };
});

describe("a second Redis for limits by the second", () => {
  let main: RedisServer;
  let perSecond: RedisServer;
  let store: Awaited<ReturnType<typeof openPair>>;

  beforeEach(async () => {
    main = await RedisServer.start({ engine: "redis" });
    perSecond = await RedisServer.start({ engine: "redis" });
    store = await openPair(main, perSecond);
  });

  afterEach(async () => {
    await store?.close();
    await main?.stop();
    await perSecond?.stop();
  });

  /** So wide that a full bucket needs years: nothing drains while the test looks. */
  const bySecond = (key: string, cost = 1): Charge =>
    testCharge({ key, hits: 1, periodUs: 1_000_000, burst: 100_000_000, cost });
  const byMinute = (key: string, cost = 1): Charge =>
    testCharge({ key, hits: 1, periodUs: 60_000_000, burst: 10, cost });

  it("holds limits whose period is one second, and no others", async () => {
    await takeOne(store, [bySecond("s", 1_000_000)], soon());
    await takeOne(store, [byMinute("m")], soon());
    await takeOne(store, [{ ...byMinute("t"), periodUs: 10_000_000 }], soon());
    expect(await perSecond.client().keys("*")).toEqual(["headgate:s"]);
    expect((await main.client().keys("*")).sort()).toEqual(["headgate:m", "headgate:t"]);
  });

  it("is asked together with the first, all or nothing", async () => {
    const granted = await takeOne(store, [bySecond("s", 1_000_000), byMinute("m", 8)], soon());
    const denied = await takeOne(store, [bySecond("s", 2_000_000), byMinute("m", 8)], soon());
    expect([granted.isDenied, denied.isDenied]).toEqual([false, true]);
    expect(denied.results.map(({ isOver }) => isOver)).toEqual([false, true]);
    const peeked = await store.peek(testKey("s"), soon());
    expect(Math.ceil((peeked?.bucket.level ?? 0) / unitsPerHit)).toBe(1_000_000);
  });

  it("is looked at, too, for a key whose limit is not known", async () => {
    await takeOne(store, [bySecond("s", 1_000_000), byMinute("m")], soon());
    expect(await store.peek(testKey("s"), soon())).toBeDefined();
    expect(await store.peek(testKey("m"), soon())).toBeDefined();
    expect(await store.forget([testKey("s"), testKey("m"), testKey("never")], soon())).toBe(2);
    expect(await store.peek(testKey("s"), soon())).toBeUndefined();
  });

  it("takes only its own limits with it when it is away", async () => {
    await perSecond.kill();
    const batch = [once(bySecond("s")), once(byMinute("m")), once(bySecond("s"), byMinute("m"))];
    const kinds = async (): Promise<readonly string[]> => {
      const outcomes = await store.take(batch, soon());
      return outcomes.map(({ kind }) => kind);
    };
    await waitFor("the loss is noticed", async () => (await kinds())[0] === "failed");
    await store.forget([testKey("m")], realClock.monotonicMs() + 300).catch(() => {});
    expect(await kinds()).toEqual(["failed", "decided", "failed"]);
    await perSecond.restart();
    await waitFor("all is well again", async () => (await kinds()).every((k) => k === "decided"));
  });
});

describe("a cluster beside a second Redis", () => {
  it("splits a request over tags and both", async () => {
    const cluster = await RedisCluster.start("redis");
    const server = await RedisServer.start({ engine: "redis" });
    const { connections } = await openClusterStore(cluster.nodes);
    const { connections: second } = await openTestStore(server);
    const store = createRedisStore({
      main: { connections, tagCount: testTagCount },
      perSecond: { connections: second },
      keyPrefix: "headgate:",
      onBadBuckets: () => {},
      clock: realClock,
    });
    try {
      const charges = Array.from({ length: 10 }, (_, i) =>
        testCharge({ key: `k${i}`, periodUs: i < 2 ? 1_000_000 : 60_000_000, cost: 5 }),
      );
      const outcomes = await store.take([once(...charges), once(...charges)], soon());
      expect(outcomes.map(({ kind }) => kind)).toEqual(["decided", "decided"]);
      const last = await takeOne(store, charges.slice(2), soon());
      expect(last.isDenied).toBe(true);
      expect(await server.client().dbsize()).toBeLessThanOrEqual(2);
    } finally {
      await store.close();
      await cluster.stop();
      await server.stop();
    }
  });
});
