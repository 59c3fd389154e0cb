import { assertNever, isServiceError } from "../../core/base/errors.js";
import { openRedisCluster } from "../../store/redis/cluster/cluster.js";
import { joinAddress } from "../../store/redis/cluster/cluster-topology.js";
import { openRedisSentinel } from "../../store/redis/cluster/sentinel.js";
import { createRedisStore, type RedisSide } from "../../store/redis/cluster/split-redis.js";
import { openRedis } from "../../store/redis/connections.js";
import { createRedisCoordination } from "../../store/redis/coordination/redis-coordination.js";
import type { TlsSource } from "../../store/redis/dial.js";
import type { RedisEvent } from "../../store/redis/redis-connection.js";
import {
  type HostPort,
  redactClusterTarget,
  redactRedisTarget,
  redactSentinelTarget,
} from "../../store/redis/target.js";
import { exitCodes, StartFailure } from "../base/failure.js";
import { openRedisTls } from "../config/redis-tls.js";
import {
  isOverTls,
  type RedisChoice,
  type StoreChoice,
  speaksTls,
} from "../config/store-choice.js";
import type { OpenSpace, OpenStore, StoreParts } from "./open-store.js";
import { type ConnectionCounts, StoreJournal, type StorePool } from "./store-journal.js";
import { remedyOf } from "./store-remedies.js";

/** Maximum time that the start waits for Redis before it continues, in milliseconds. */
const startWaitMsMax = 2_000;

/**
 * Opens the configured Redis. If Redis is unreachable, the start continues. If Redis refuses the
 * connection, the start fails.
 *
 * @throws StartFailure if Redis refuses the user, password or commands, or if a TLS file is invalid
 */
export async function openRedisStore(
  redis: Extract<StoreChoice, { kind: "redis" }>,
  parts: StoreParts,
): Promise<OpenStore> {
  const { config, clock, random, logger } = parts;
  const { main, perSecond } = redis;
  const others = config.regions?.peers ?? [];
  const isTls = speaksTls(redis) || others.some((other) => isOverTls(other.redis));
  const tls = isTls ? openRedisTls(redis.tls, logger) : undefined;
  const mainSide = openSide(main, { ...parts, tls });
  const secondSide = perSecond && openSide(perSecond, { ...parts, tls });
  const { keyPrefix } = config;
  const { onBadBuckets } = parts;
  const store = createRedisStore({
    main: mainSide,
    ...(secondSide === undefined ? {} : { perSecond: secondSide }),
    keyPrefix,
    onBadBuckets,
    clock,
  });
  const openSpace: OpenSpace = (name) =>
    createRedisStore({
      main: asideOf(mainSide),
      ...(secondSide === undefined ? {} : { perSecond: asideOf(secondSide) }),
      keyPrefix: `${keyPrefix}${name}`,
      onBadBuckets,
      clock,
    });
  const choices = perSecond === undefined ? [main] : [main, perSecond];
  const address = choices.map(redactChoice).join(" and ");
  try {
    await store.verify(clock.monotonicMs() + startWaitMsMax);
    logger.info({ event: "storeOpened", store: "redis", address }, "Redis answers.");
  } catch (thrown) {
    if (!isServiceError(thrown)) throw thrown;
    const { code, message } = thrown;
    const remedy = remedyOf(code);
    if (code === "STORE_UNAUTHENTICATED" || code === "STORE_ACCESS_DENIED") {
      await store.close();
      const words = [`Redis at ${address} refuses the connection.`, message, remedy].join(" ");
      throw new StartFailure(exitCodes.failure, words);
    }
    logger.warn(
      { event: "storeAway", store: "redis", address, code, message, remedy },
      "Redis does not answer; until it does, limits answer with their on_store_failure.",
    );
  }
  const isAway = (): boolean => mainSide.isAway() || (secondSide?.isAway() ?? false);
  const pools = (): readonly StorePool[] => [
    { name: "redis_pool", counts: mainSide.counts() },
    ...(secondSide === undefined
      ? []
      : [{ name: "redis_per_second_pool" as const, counts: secondSide.counts() }]),
  ];
  const { connections } = mainSide;
  const coordination = createRedisCoordination({ connections, clock, random, keyPrefix });
  // The start does not wait for them: no decision ever does.
  const peers = others.map(({ name, redis: choice }) => {
    const main = openSide(choice, { ...parts, tls, region: name });
    return { name, store: createRedisStore({ main, keyPrefix, onBadBuckets, clock }) };
  });
  return { kind: "redis", store, openSpace, coordination, peers, isAway, pools };
}

/** Returns the same Redis, over the connection that decisions do not wait for. */
function asideOf({ connections, tagCount }: OpenSide): RedisSide {
  const { background, fleet } = connections;
  return {
    ...(tagCount === undefined ? {} : { tagCount }),
    connections: {
      decision: background,
      decisionPatiently: background,
      fleet,
      background,
      close: async () => {},
    },
  };
}

interface OpenSide extends RedisSide {
  readonly isAway: () => boolean;
  readonly counts: () => ConnectionCounts;
}

function openSide(
  choice: RedisChoice,
  parts: StoreParts & { readonly tls: TlsSource | undefined; readonly region?: string },
): OpenSide {
  const { config, clock, random, tls } = parts;
  const journal = new StoreJournal(parts);
  const said = { isAway: () => journal.isAway, counts: () => journal.counts };
  const { timeoutMs } = choice;
  const common = {
    clock,
    random,
    silenceMsMax: config.timings.redisSilenceMsMax,
    ...(tls === undefined ? {} : { tls }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
  const name = redactChoice(choice);
  switch (choice.kind) {
    case "single": {
      const onEvent = (event: RedisEvent): void => journal.note(event, name);
      return { connections: openRedis({ ...common, target: choice.target, onEvent }), ...said };
    }
    case "cluster": {
      const onEvent = (event: RedisEvent, address: string): void => journal.note(event, address);
      const connections = openRedisCluster({ ...common, target: choice.target, onEvent });
      return { connections, tagCount: config.redisClusterTags, ...said };
    }
    case "sentinel": {
      const onEvent = (event: RedisEvent, place: HostPort | undefined): void => {
        journal.note(event, place === undefined ? name : joinAddress(place.host, place.port));
      };
      const { target } = choice;
      return { connections: openRedisSentinel({ ...common, target, onEvent }), ...said };
    }
    default:
      return assertNever(choice);
  }
}

function redactChoice(choice: RedisChoice): string {
  switch (choice.kind) {
    case "single":
      return redactRedisTarget(choice.target);
    case "cluster":
      return redactClusterTarget(choice.target);
    case "sentinel":
      return redactSentinelTarget(choice.target);
    default:
      return assertNever(choice);
  }
}
