import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Charge, unitsPerHit } from "../../src/core/limits/bucket.js";
import { createRedisStore } from "../../src/store/redis/cluster/split-redis.js";
import { openRedis } from "../../src/store/redis/connections.js";
import { once, takeOne, testCharge, testKey } from "../support/charges.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { allStarted, RedisServer } from "../support/redis-server.js";
import { loopbackTarget, soon } from "../support/redis-store.js";
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

async function startPair(): Promise<readonly [RedisServer, RedisServer]> {
  const start = () => RedisServer.start({ engine: "redis" });
  const [main, perSecond] = await allStarted([start(), start()]);
  if (main === undefined || perSecond === undefined) throw new Error("two were started");
  return [main, perSecond];
}

describeLimitStore("SplitStore on two Redis servers", async () => {
  const servers = await startPair();
  const stop = async (): Promise<void> =>
    void (await Promise.all(servers.map((one) => one.stop())));
  return { open: () => openPair(...servers), soon, isSplit: true, stop };
});

describe("a second Redis for limits by the second", () => {
  let main: RedisServer;
  let perSecond: RedisServer;
  let store: Awaited<ReturnType<typeof openPair>>;

  beforeAll(async () => {
    [main, perSecond] = await startPair();
    store = await openPair(main, perSecond);
  });

  beforeEach(async () => {
    for (const server of [main, perSecond]) await server.client().flushall();
  });

  afterAll(async () => {
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
