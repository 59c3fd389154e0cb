import type { Clock, Random } from "../../core/base/clock.js";
import { assertNever, isServiceError, ServiceError } from "../../core/base/errors.js";
import type { CoordinationStore } from "../../store/coordination/coordination-store.js";
import { createMemoryCoordination } from "../../store/coordination/memory-coordination.js";
import type { LimitStore } from "../../store/limit-store.js";
import { MemoryLimitStore } from "../../store/memory.js";
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
import type { Logger } from "../base/logger.js";
import type { Config } from "../config/config.js";
import { openRedisTls } from "../config/redis-tls.js";
import { type RedisChoice, speaksTls } from "../config/store-choice.js";
import { type ConnectionCounts, StoreJournal, type StorePool } from "./store-journal.js";
import { remedyOf } from "./store-remedies.js";

/** What opening the store needs. */
export interface StoreParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly onBadBuckets: (count: number) => void;
}

/** The store of this process. */
export interface OpenStore {
  /** What metrics and people call it. */
  readonly kind: "memory" | "redis";
  readonly store: LimitStore;
  readonly openSpace: OpenSpace;
  readonly coordination: CoordinationStore;
  /** Whether some server that it needs cannot be reached at all now. */
  readonly isAway: () => boolean;
  /** Connections to each server that it needs. */
  readonly pools: () => readonly StorePool[];
  /** Keys of limits that it holds; absent: that is not known here. */
  readonly keyCount?: () => number;
}

/**
 * Opens buckets apart from all others, for who is in nobody's way: no connection of its own, and
 * none that decisions use. It is not to be closed.
 *
 * @param name letters, digits and colons
 */
type OpenSpace = (name: string) => LimitStore;

/**
 * The most keys of the store that answers for `on_store_failure: local`, 10 MB of them: it is
 * needed exactly when Redis fails, and must not double then what the process holds.
 */
export const localKeysMax = 200_000;

/** How long the start waits for Redis before it goes on without. */
const startWaitMsMax = 2_000;

/**
 * Opens the store that the configuration names. A Redis that is away is no reason not to start; one
 * that refuses us is.
 *
 * @throws StartFailure when Redis refuses our user, password or commands, or a TLS file is no good
 */
export async function openStore(parts: StoreParts): Promise<OpenStore> {
  const { config, clock, random, logger } = parts;
  if (config.store.kind === "memory") {
    const sentence = "Limits are kept in this process; other replicas do not share them.";
    logger.info({ event: "storeOpened", store: "memory" }, sentence);
    const store = new MemoryLimitStore({ clock, random, keysMax: config.memoryKeysMax });
    const openSpace = (): LimitStore => openLocalStore(config, parts);
    const coordination = createMemoryCoordination(clock);
    const keyCount = (): number => store.keyCount;
    const servers = { isAway: () => false, pools: () => [] };
    return { kind: "memory", store, openSpace, coordination, keyCount, ...servers };
  }
  const { main, perSecond } = config.store;
  const tls = speaksTls(config.store) ? openRedisTls(config.store.tls, logger) : undefined;
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
  return { kind: "redis", store, openSpace, coordination, isAway, pools };
}

/**
 * The same store, which decides nothing until it may: until then, it is to decisions as if it were
 * away. What people ask of it, it answers.
 */
export function heldUntil(opened: OpenStore, mayDecide: () => boolean): OpenStore {
  if (!opened.coordination.isShared) return opened;
  const { store } = opened;
  const held: LimitStore = {
    ...(store.shorten === undefined ? {} : { shorten: store.shorten.bind(store) }),
    take: (batch, deadlineMs) =>
      mayDecide() ? store.take(batch, deadlineMs) : Promise.reject(heldError()),
    ping: (deadlineMs) => (mayDecide() ? store.ping(deadlineMs) : Promise.reject(heldError())),
    peek: (key, deadlineMs) => store.peek(key, deadlineMs),
    forget: (keys, deadlineMs) => store.forget(keys, deadlineMs),
    close: () => store.close(),
  };
  return { ...opened, store: held };
}

const heldError = (): ServiceError => new ServiceError("STORE_UNAVAILABLE");

/** An empty store for the local shares: never larger than what HEADGATE_MEMORY_KEYS_MAX allows. */
export function openLocalStore(
  { memoryKeysMax }: Pick<Config, "memoryKeysMax">,
  { clock, random }: Pick<StoreParts, "clock" | "random">,
): MemoryLimitStore {
  return new MemoryLimitStore({ clock, random, keysMax: Math.min(memoryKeysMax, localKeysMax) });
}

/** The same Redis, over the connection that decisions do not wait for. */
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
  parts: StoreParts & { readonly tls: TlsSource | undefined },
): OpenSide {
  const { config, clock, random, logger, tls } = parts;
  const journal = new StoreJournal({ logger, clock });
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
