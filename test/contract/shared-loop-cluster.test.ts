import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openClusterStore, type TestClusterStore } from "../support/cluster-store.js";
import { FakeRandom } from "../support/fake-random.js";
import { testReport } from "../support/fleet-reports.js";
import { LoopFleet } from "../support/loop-fleet.js";
import { RedisCluster } from "../support/redis-cluster.js";

describe("SharedLoop on a cluster of redis", () => {
  let cluster: RedisCluster;
  let opened: TestClusterStore;

  beforeAll(async () => {
    cluster = await RedisCluster.start("redis");
    opened = await openClusterStore(cluster.nodes.slice(0, 1));
  });

  afterAll(async () => {
    await opened?.store.close();
    await cluster?.stop();
  });

  it("has one leader, whose sheet is made of what all have told", async () => {
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
