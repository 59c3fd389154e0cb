import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { StartFailure } from "../../src/app/base/failure.js";
import { QuotaLeases } from "../../src/fleet/claims/quota-leases.js";
import { createRedisStore } from "../../src/store/redis/cluster/split-redis.js";
import { RedisQuotas } from "../../src/store/redis/coordination/redis-quotas.js";
import { openClockedBudgets } from "../support/budgets.js";
import { once, takeOne, testCharge } from "../support/charges.js";
import { openClusterStore, type TestClusterStore, testTagCount } from "../support/cluster-store.js";
import { openConfiguredStore } from "../support/configured-store.js";
import { FakeClock } from "../support/fake-clock.js";
import { FakeRandom } from "../support/fake-random.js";
import { testReport } from "../support/fleet-reports.js";
import { LoopFleet } from "../support/loop-fleet.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { startRedis } from "../support/redis.js";
import { RedisCluster } from "../support/redis-cluster.js";
import { openTestStore, soon } from "../support/redis-store.js";
import { openClockedRooms } from "../support/rooms.js";
import { useStage } from "../support/stage.js";
import { describeBudgets } from "./budget-cases.js";
import { describeLeases } from "./lease-cases.js";
import { describeLimitStore } from "./limit-store.js";
import { describeRooms } from "./room-cases.js";

const stage = useStage("test");

// A cluster is ready two seconds after its start, so one serves them all.
let cluster: RedisCluster;
let opened: TestClusterStore;

beforeAll(async () => {
  cluster = await RedisCluster.start("redis");
  opened = await openClusterStore(cluster.nodes.slice(1, 2));
});

afterAll(async () => {
  await opened?.store.close();
  await cluster?.stop();
});

describeLimitStore("SplitStore on a cluster of redis", async () => ({
  open: async () => (await openClusterStore(cluster.nodes.slice(1, 2))).store,
  soon,
  isSplit: true,
  stop: async () => {},
}));

describeLeases("in a cluster of redis", (test) => {
  const { fleet: connection } = opened.connections;
  const parts = { clock: realClock, random: realRandom, keyPrefix: `${test}:` };
  return new QuotaLeases({ store: new RedisQuotas({ connection, ...parts }), random: realRandom });
});

describe("waiting rooms in a cluster of redis", () => {
  let worldCount = 0;
  describeRooms(() => {
    worldCount += 1;
    const { connections } = opened;
    const clock = new FakeClock();
    const keyPrefix = `rooms${worldCount}:`;
    return { store: openClockedRooms({ connections, clock, keyPrefix }), clock };
  });
});

describe("budgets in a cluster of redis", () => {
  let worldCount = 0;
  describeBudgets(() => {
    worldCount += 1;
    const { connections } = opened;
    const clock = new FakeClock();
    const keyPrefix = `budgets${worldCount}:`;
    return { store: openClockedBudgets({ connections, clock, keyPrefix }), clock };
  });
});

describe("SharedLoop on a cluster of redis", () => {
  it("has one leader, whose snapshot is made of what all have told", async () => {
    const connection = opened.connections.background;
    const random = new FakeRandom(1);
    const fleet = new LoopFleet({ connection, random, keyPrefix: "headgate:" });
    const [leader, other] = [await fleet.join(), await fleet.join()];
    for (const replica of [leader, other]) {
      await replica.report([{ nodeId: `node of ${replica.id}` }], testReport);
    }
    await leader.pass(1_250);
    await other.pass(500);
    expect(fleet.leaders).toEqual([leader]);
    const shares = other.loop.current()?.services.get("orders")?.shares;
    expect([...(shares?.keys() ?? [])].toSorted()).toEqual(
      [leader, other].map(({ id }) => `node of ${id}`).toSorted(),
    );
    for (const { loop } of fleet.replicas) {
      await loop.stop();
      expect(loop.counts.failed).toBe(0);
    }
  });
});

describe("a cluster beside a second Redis", () => {
  it("splits a request over tags and both", async () => {
    const server = await startRedis(stage);
    const { connections } = await openClusterStore(cluster.nodes);
    const { connections: second } = await openTestStore(server);
    const store = createRedisStore({
      main: { connections, tagCount: testTagCount },
      perSecond: { connections: second },
      keyPrefix: "headgate:",
      onBadBuckets: () => {},
      clock: realClock,
    });
    stage.atEnd(() => store.close());
    const charges = Array.from({ length: 10 }, (_, i) =>
      testCharge({ key: `k${i}`, periodUs: i < 2 ? 1_000_000 : 60_000_000, cost: 5 }),
    );
    const outcomes = await store.take([once(...charges), once(...charges)], soon());
    expect(outcomes.map(({ kind }) => kind)).toEqual(["decided", "decided"]);
    const last = await takeOne(store, charges.slice(2), soon());
    expect(last.isDenied).toBe(true);
    expect(await server.client().dbsize()).toBeLessThanOrEqual(2);
  });
});

describe("openStore()", () => {
  beforeEach(async () => {
    // Without its script, too: whoever has the rights must load it.
    const nodes = [0, 1, 2].map((node) => cluster.control(node));
    await Promise.all(nodes.flatMap((node) => [node.flushall(), node.script("FLUSH")]));
  });

  it("opens a cluster and a second Redis, as a user with no more rights than needed", async () => {
    const server = await startRedis(stage);
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
    const { store } = await openConfiguredStore(stage, {
      REDIS_TYPE: "cluster",
      REDIS_URL: urlOf(cluster),
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
    for (const node of [0, 1, 2]) {
      const control = cluster.control(node);
      await control.config("SET", "requirepass", "real");
      stage.atEnd(() => control.config("SET", "requirepass", ""));
    }
    const env = { REDIS_TYPE: "cluster", REDIS_URL: urlOf(cluster), REDIS_AUTH: "hunter2" };
    const failure: StartFailure = await openConfiguredStore(stage, env).then(
      () => Promise.reject(new Error("it started")),
      (thrown) => thrown,
    );
    expect(failure.message).toContain("refuses the connection");
    expect(failure.message).not.toContain("hunter2");
  });
});

function urlOf({ nodes }: RedisCluster): string {
  return nodes.map(({ port }) => `127.0.0.1:${port}`).join();
}
