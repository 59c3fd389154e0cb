import type { Clock, Random } from "../../../core/base/clock.js";
import type { CoordinationStore } from "../../coordination/coordination-store.js";
import type { RedisConnections } from "../connections.js";
import { RedisLoop } from "./redis-loop.js";
import { RedisRecords } from "./redis-records.js";

/** What coordination over Redis is made of. */
export interface RedisCoordinationParts {
  readonly connections: Pick<RedisConnections, "fleet" | "background">;
  readonly clock: Clock;
  readonly random: Random;
  /** Replicas with the same one on the same store are one fleet. */
  readonly keyPrefix: string;
}

/** Coordination over Redis: heartbeats never wait behind what is large. */
export function createRedisCoordination(parts: RedisCoordinationParts): CoordinationStore {
  const { connections, ...common } = parts;
  const heartbeats = { ...common, connection: connections.fleet };
  const bulk = { ...common, connection: connections.background };
  return {
    isShared: true,
    records: new RedisRecords(bulk),
    loop: new RedisLoop({ heartbeats, bulk }),
  };
}
