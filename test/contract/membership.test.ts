import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Membership } from "../../src/fleet/claims/membership.js";
import { enginesFor } from "../support/engines.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { RedisServer } from "../support/redis-server.js";
import { openTestStore, soon, type TestRedisStore } from "../support/redis-store.js";
import { waitFor } from "../support/wait.js";

const leaseMs = 60_000;
const key = "headgate:fleet:replicas";

async function storeMs(control: Redis): Promise<number> {
  const [seconds, micros] = await control.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

describe.each(enginesFor.behaviour)("Membership on %s", (engine) => {
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

  function join(): Membership {
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
    expect(await server.client().zcard(key)).toBe(0);
  });

  it("forgets who fell silent when the lease is over, and not before", async () => {
    const control = server.client();
    const nowMs = await storeMs(control);
    await control.zadd(key, nowMs - leaseMs - 1, "silent");
    await control.zadd(key, nowMs - leaseMs / 2, "quiet");
    const member = join();
    await waitFor("one beside it is counted", () => member.liveReplicas() === 2);
    const known = await control.zrange(key, "0", "-1");
    expect(known).toContain("quiet");
    expect(known).not.toContain("silent");
    await member.stop();
  });

  it("gives who was heard in the future one lease more, not until then", async () => {
    const control = server.client();
    await control.zadd(key, (await storeMs(control)) + 7_200_000, "stepped");
    const member = join();
    await waitFor("both are counted", () => member.liveReplicas() === 2);
    const heardMs = Number(await control.zscore(key, "stepped"));
    expect(heardMs).toBeLessThanOrEqual(await storeMs(control));
    await member.stop();
  });

  it("leaves a key that goes by itself, should nobody be left to remove it", async () => {
    const member = join();
    const control = server.client();
    await waitFor("it has joined", async () => (await control.exists(key)) === 1);
    expect(await control.pttl(key)).toBeGreaterThan(0);
    await member.stop();
    await opened.store.ping(soon());
  });
});
