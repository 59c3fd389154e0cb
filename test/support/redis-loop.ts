import type { Clock } from "../../src/core/base/clock.js";
import { RedisLoop } from "../../src/store/redis/coordination/redis-loop.js";
import type { StoreConnection } from "../../src/store/redis/scripts/connection.js";
import { FakeClock } from "./fake-clock.js";
import { FakeRandom } from "./fake-random.js";

/** The loop of a fleet over one connection, for all that a replica does. */
export function redisLoop(
  connection: StoreConnection,
  clock: Clock = new FakeClock(),
  keyPrefix = "headgate:",
): RedisLoop {
  const store = { connection, clock, random: new FakeRandom(), keyPrefix };
  return new RedisLoop({ heartbeats: store, bulk: store });
}
