import { type RedisEngine, RedisServer } from "../support/redis-server.js";
import { openTestStore, soon } from "../support/redis-store.js";
import { describeLimitStore } from "./limit-store.js";

const engines: readonly RedisEngine[] = ["redis", "valkey"];

for (const engine of engines) {
  describeLimitStore(`RedisLimitStore on ${engine}`, async () => {
    const server = await RedisServer.start({ engine });
    const { store } = await openTestStore(server);
    return { store, soon, stop: () => store.close().then(() => server.stop()) };
  });
}
