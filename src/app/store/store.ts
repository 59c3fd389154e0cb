import { ServiceError } from "../../core/base/errors.js";
import { createMemoryCoordination } from "../../store/coordination/memory-coordination.js";
import type { LimitStore } from "../../store/limit-store.js";
import { MemoryLimitStore } from "../../store/memory.js";
import type { Config } from "../config/config.js";
import type { OpenStore, StoreParts } from "./open-store.js";

/**
 * Maximum number of keys of the store for `on_store_failure: local`, 10 MB of them. It is used when
 * Redis fails, and must not double the memory of the process then.
 */
export const localKeysMax = 200_000;

/**
 * Opens the configured store. If a Redis is unreachable, the start continues. If it refuses the
 * connection, the start fails.
 *
 * @throws StartFailure if Redis refuses the user, password or commands, or if a TLS file is invalid
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
    return { kind: "memory", store, openSpace, coordination, keyCount, peers: [], ...servers };
  }
  // Most of the library is for Redis, which the store in this process does not need.
  const { openRedisStore } = await import("./redis-store.js");
  return openRedisStore(config.store, parts);
}

/**
 * Returns the same store, which decides nothing until `mayDecide`: until then, decisions see it as
 * unreachable. Requests of operators are answered.
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

/** Creates an empty store for local shares, of at most HEADGATE_MEMORY_KEYS_MAX keys. */
export function openLocalStore(
  { memoryKeysMax }: Pick<Config, "memoryKeysMax">,
  { clock, random }: Pick<StoreParts, "clock" | "random">,
): MemoryLimitStore {
  return new MemoryLimitStore({ clock, random, keysMax: Math.min(memoryKeysMax, localKeysMax) });
}
