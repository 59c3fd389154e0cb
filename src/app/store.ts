import type { Clock, Random } from "../core/clock.js";
import { isServiceError } from "../core/errors.js";
import type { LimitStore } from "../store/limit-store.js";
import { MemoryLimitStore } from "../store/memory.js";
import { openRedisCluster } from "../store/redis/cluster.js";
import { clusterNodesMax } from "../store/redis/cluster-topology.js";
import { openRedis, type RedisConnections } from "../store/redis/connections.js";
import type { ConnectionRole, RedisEvent } from "../store/redis/redis-connection.js";
import { createRedisStore, type RedisSide } from "../store/redis/split-redis.js";
import { redactClusterTarget, redactRedisTarget } from "../store/redis/target.js";
import type { Config } from "./config.js";
import { exitCodes, StartFailure } from "./failure.js";
import type { Logger } from "./logger.js";
import type { RedisChoice } from "./store-choice.js";

/** What opening the store needs. */
export interface StoreParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly onBadBuckets: (count: number) => void;
}

/** The store of this process. */
export type OpenStore =
  | { readonly kind: "memory"; readonly store: MemoryLimitStore }
  | {
      readonly kind: "redis";
      readonly store: LimitStore;
      readonly connections: RedisConnections;
    };

/**
 * The most keys of the store that answers for `on_store_failure: local`, 50 MB of them: it is
 * needed exactly when Redis fails, and must not double then what the process holds.
 */
export const localKeysMax = 200_000;

/** How long the start waits for Redis before it goes on without. */
const startWaitMsMax = 2_000;

/**
 * Opens the store that the configuration names. A Redis that is away is no reason not to start; one
 * that refuses us is.
 *
 * @throws StartFailure when Redis refuses our user, password or commands
 */
export async function openStore(parts: StoreParts): Promise<OpenStore> {
  const { config, clock, logger } = parts;
  if (config.store.kind === "memory") {
    const sentence = "Limits are kept in this process: no other replica shares them.";
    logger.info({ event: "storeOpened", store: "memory" }, sentence);
    const store = new MemoryLimitStore({ clock, keysMax: config.memoryKeysMax });
    return { kind: "memory", store };
  }
  const { main, perSecond } = config.store;
  const mainSide = openSide(main, parts);
  const secondSide = perSecond === undefined ? undefined : openSide(perSecond, parts);
  const store = createRedisStore({
    main: mainSide,
    ...(secondSide === undefined ? {} : { perSecond: secondSide }),
    keyPrefix: config.keyPrefix,
    onBadBuckets: parts.onBadBuckets,
    clock,
  });
  const choices = perSecond === undefined ? [main] : [main, perSecond];
  const address = choices.map(redactChoice).join(" and ");
  try {
    await store.verify(clock.monotonicMs() + startWaitMsMax);
    logger.info({ event: "storeOpened", store: "redis", address }, "Redis answers.");
  } catch (thrown) {
    if (!isServiceError(thrown)) throw thrown;
    if (thrown.code === "STORE_ACCESS_DENIED") {
      await store.close();
      throw new StartFailure(exitCodes.failure, deniedWords(address, thrown.message));
    }
    logger.warn(
      { event: "storeAway", store: "redis", address, code: thrown.code },
      "Redis does not answer; limits answer by their on_store_failure until it does.",
    );
  }
  return { kind: "redis", store, connections: mainSide.connections };
}

/** An empty store for the local shares: never larger than what HEADGATE_MEMORY_KEYS_MAX allows. */
export function openLocalStore(
  { memoryKeysMax }: Pick<Config, "memoryKeysMax">,
  clock: Clock,
): MemoryLimitStore {
  return new MemoryLimitStore({ clock, keysMax: Math.min(memoryKeysMax, localKeysMax) });
}

function deniedWords(address: string, reason: string): string {
  const remedy = "Set REDIS_AUTH (or REDIS_AUTH_FILE) to its password, or to user:password.";
  return `Redis at ${address} refuses us. ${reason} ${remedy}`;
}

function openSide(choice: RedisChoice, { config, clock, random, logger }: StoreParts): RedisSide {
  if (choice.kind === "single") {
    const onEvent = createRedisLog(logger, redactChoice(choice));
    return { connections: openRedis({ target: choice.target, clock, random, onEvent }) };
  }
  const logs = new Map<string, (event: RedisEvent) => void>();
  const onEvent = (event: RedisEvent, address: string): void => {
    const log = logs.get(address) ?? createRedisLog(logger, address);
    // Nodes come and go: what was said of those long gone is forgotten.
    if (logs.size >= clusterNodesMax) logs.clear();
    logs.set(address, log);
    log(event);
  };
  const connections = openRedisCluster({ target: choice.target, clock, random, onEvent });
  return { connections, tagCount: config.redisClusterTags };
}

function redactChoice(choice: RedisChoice): string {
  if (choice.kind === "single") return redactRedisTarget(choice.target);
  return redactClusterTarget(choice.target);
}

/** Logs what happens to connections: each outage once a connection, however often it is retried. */
function createRedisLog(logger: Logger, address: string): (event: RedisEvent) => void {
  const away = new Set<ConnectionRole>();
  return (event) => {
    const { kind, ...facts } = event;
    const line = { event: kind, address, ...facts };
    if (event.kind === "redisConnected") {
      away.delete(event.role);
      logger.info(line, "Connected to Redis.");
    } else if (event.kind === "redisFailed" || event.kind === "redisLost") {
      const isNew = !away.has(event.role);
      away.add(event.role);
      if (isNew) logger.warn(line, "The connection to Redis failed; it is tried again.");
      else logger.debug(line, "The connection to Redis failed again.");
    } else {
      logger.debug(line, "Connecting to Redis again.");
    }
  };
}
