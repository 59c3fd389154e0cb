import { openRedisCluster } from "../../src/store/redis/cluster/cluster.js";
import { createRedisStore } from "../../src/store/redis/cluster/split-redis.js";
import type { RedisConnections } from "../../src/store/redis/connections.js";
import type { RedisEvent } from "../../src/store/redis/redis-connection.js";
import { SplitStore } from "../../src/store/split/split-store.js";
import { realClock, realRandom } from "./real-clock.js";
import type { RedisServer } from "./redis-server.js";
import { soon } from "./redis-store.js";

/** Four on each of three nodes. */
export const testTagCount = 12;

/** A store on a real cluster, with what a test wants to see of it. */
export interface TestClusterStore {
  readonly store: SplitStore;
  readonly connections: RedisConnections;
  readonly events: { readonly event: RedisEvent; readonly address: string }[];
}

/** Opens a store on the cluster that these are nodes of. */
export async function openClusterStore(
  seeds: readonly Pick<RedisServer, "port">[],
  options: { readonly isVerified?: boolean; readonly silenceMsMax?: number } = {},
): Promise<TestClusterStore> {
  const events: TestClusterStore["events"] = [];
  const connections = openRedisCluster({
    target: { nodes: seeds.map(({ port }) => ({ host: "127.0.0.1", port })), isTls: false },
    clock: realClock,
    random: realRandom,
    onEvent: (event, address) => events.push({ event, address }),
    ...(options.silenceMsMax === undefined ? {} : { silenceMsMax: options.silenceMsMax }),
  });
  const store = createRedisStore({
    main: { connections, tagCount: testTagCount },
    keyPrefix: "headgate:",
    onBadBuckets: () => {},
    clock: realClock,
  });
  if (!(store instanceof SplitStore)) throw new Error("a cluster's store is split");
  if (options.isVerified ?? true) await store.verify(soon());
  return { store, connections, events };
}
