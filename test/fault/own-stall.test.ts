import { describe, expect, it } from "vitest";
import { defaultTimings } from "../../src/app/options/test-timings.js";
import { openRedis } from "../../src/store/redis/connections.js";
import type { RedisEvent } from "../../src/store/redis/redis-connection.js";
import { RedisLimitStore } from "../../src/store/redis/redis-limit-store.js";
import { takeOne, testCharge } from "../support/charges.js";
import { expectUnharmed, startFaultRig, wellOutcomes } from "../support/fault-rig.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { redisEnv, startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { loopbackTarget, soon } from "../support/redis-store.js";
import { useStage } from "../support/stage.js";
import { timingsEnv, trueTimes } from "../support/true-times.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** How long a server may be silent that owes a reply. */
const silenceMsMax = trueTimes ? defaultTimings.redisSilenceMsMax : 600;

/** Clearly longer than that. */
const stallMs = 1.5 * silenceMsMax;

/** Connections that the server has taken since it started. */
async function connectionCount(redis: RedisServer): Promise<number> {
  const stats = await redis.client().info("stats");
  return Number(/total_connections_received:(\d+)/.exec(stats)?.[1]);
}

/** Keeps this process busy, so that no timer fires and nothing is read. */
function stall(): void {
  const endMs = realClock.monotonicMs() + stallMs;
  while (realClock.monotonicMs() < endMs);
}

async function pass(ms: number): Promise<void> {
  const startMs = realClock.monotonicMs();
  await waitFor("time passes", () => realClock.monotonicMs() - startMs > ms);
}

describe("a process that stands still for longer than a server may be silent", () => {
  it("reads the replies that came meanwhile, on the connections that it had", async () => {
    const redis = await startRedis(stage);
    const events: RedisEvent[] = [];
    const connections = openRedis({
      target: loopbackTarget(redis.port),
      silenceMsMax,
      clock: realClock,
      random: realRandom,
      onEvent: (event) => events.push(event),
    });
    const store = new RedisLimitStore({ connections });
    stage.atEnd(() => store.close());
    await store.verify(soon());
    const connected = events.length;
    for (let i = 0; i < 3; i += 1) {
      // Nothing is owed any more, so that the watch begins anew with what is asked now.
      await pass(silenceMsMax / 4);
      // Behind the reading of this turn: when it has stood still, timers are what runs first.
      await new Promise((resolve) => setImmediate(resolve));
      const answer = takeOne(store, [testCharge({ key: `key ${i}` })], soon());
      // What this turn asks leaves at its end.
      await Promise.resolve();
      stall();
      expect((await answer).isDenied).toBe(false);
    }
    expect(events.slice(connected)).toEqual([]);
  });

  it("makes no new connection, and goes on deciding over the old ones", async () => {
    const redis = await startRedis(stage);
    const { headgate, traffic } = await startFaultRig(stage, {
      ...redisEnv(redis.port),
      // Only a connection that is dropped is to fail a call.
      HEADGATE_STORE_BUDGET_MS: "5000",
      ...timingsEnv({ redisSilenceMsMax: silenceMsMax }),
    });
    const before = await connectionCount(redis);
    for (let i = 1; i <= 3; i += 1) {
      // So that replies are owed when it stops; they come while it stands still.
      redis.pause();
      await pass(silenceMsMax / 10);
      headgate.process.signal("SIGSTOP");
      redis.resume();
      await pass(stallMs);
      headgate.process.signal("SIGCONT");
      await traffic.expectFromNowOn(wellOutcomes);
    }
    // Each look of the test is a connection of its own.
    expect((await connectionCount(redis)) - before).toBe(1);
    await expectUnharmed(headgate);
  });
});
