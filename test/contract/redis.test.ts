import { enginesFor } from "../support/engines.js";
import { RedisServer } from "../support/redis-server.js";
import { openTestStore, soon } from "../support/redis-store.js";
import { describeLimitStore } from "./limit-store.js";

for (const engine of enginesFor.behaviour) {
  describeLimitStore(`RedisLimitStore on ${engine}`, async () => {
    const server = await RedisServer.start({ engine });
    const open = async () => (await openTestStore(server)).store;
    return { open, soon, stop: () => server.stop() };
  });
}
