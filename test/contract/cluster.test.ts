import { openClusterStore } from "../support/cluster-store.js";
import { RedisCluster } from "../support/redis-cluster.js";
import type { RedisEngine } from "../support/redis-server.js";
import { soon } from "../support/redis-store.js";
import { describeLimitStore } from "./limit-store.js";

const engines: readonly RedisEngine[] = ["redis", "valkey"];

for (const engine of engines) {
  describeLimitStore(`SplitStore on a cluster of ${engine}`, async () => {
    const cluster = await RedisCluster.start(engine);
    const { store } = await openClusterStore(cluster.nodes.slice(1, 2));
    return { store, soon, isSplit: true, stop: () => store.close().then(() => cluster.stop()) };
  });
}
