import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Membership } from "../../src/fleet/membership.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { type RedisEngine, RedisServer } from "../support/redis-server.js";
import { openTestStore, soon, type TestRedisStore } from "../support/redis-store.js";
import { waitFor } from "../support/wait.js";

const engines: readonly RedisEngine[] = ["redis", "valkey"];

describe.each(engines)("Membership on %s", (engine) => {
  let server: RedisServer;
  let opened: TestRedisStore;

  beforeAll(async () => {
    server = await RedisServer.start({ engine });
    opened = await openTestStore(server);
  });

  afterAll(async () => {
    await opened?.store.close();
    await server?.stop();
  });

  beforeEach(async () => {
    await server.client().flushall();
  });

  function join(leaseMs = 60_000): Membership {
    return new Membership({
      connection: opened.connections.fleet,
      clock: realClock,
      random: realRandom,
      keyPrefix: "headgate:",
      heartbeatMs: 20,
      leaseMs,
    });
  }

  it("counts those who joined, and forgets at once who left", async () => {
    const members = [join(), join(), join()];
    const [first, , last] = members;
    await waitFor("each knows of three", () => members.every((m) => m.liveReplicas() === 3));
    await last?.stop();
    await waitFor("one is gone", () => first?.liveReplicas() === 2);
    for (const member of members) await member.stop();
    expect(await server.client().zcard("headgate:fleet:replicas")).toBe(0);
  });

  it("forgets who fell silent when the lease is over", async () => {
    const control = server.client();
    const [seconds] = await control.time();
    await control.zadd("headgate:fleet:replicas", Number(seconds) * 1_000, "silent");
    const member = join(1_500);
    await waitFor("both are counted", () => member.liveReplicas() === 2);
    await waitFor("the silent one is not", () => member.liveReplicas() === 1);
    await member.stop();
  });

  it("gives who was heard in the future one lease more, not until then", async () => {
    const control = server.client();
    const [seconds] = await control.time();
    await control.zadd("headgate:fleet:replicas", (Number(seconds) + 7_200) * 1_000, "stepped");
    const member = join(1_500);
    await waitFor("both are counted", () => member.liveReplicas() === 2);
    await waitFor("the other one is not", () => member.liveReplicas() === 1);
    await member.stop();
  });

  it("leaves a key that goes by itself, should nobody be left to remove it", async () => {
    const member = join();
    await waitFor("it has joined", () => server.client().exists("headgate:fleet:replicas"));
    expect(await server.client().pttl("headgate:fleet:replicas")).toBeGreaterThan(0);
    await member.stop();
    await opened.store.ping(soon());
  });
});
