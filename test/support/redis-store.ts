import type { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import type { Bucket } from "../../src/core/limits/bucket.js";
import { openRedis, type RedisConnections } from "../../src/store/redis/connections.js";
import type { RedisEvent } from "../../src/store/redis/redis-connection.js";
import { RedisLimitStore } from "../../src/store/redis/redis-limit-store.js";
import type { RedisTarget } from "../../src/store/redis/target.js";
import { realClock, realRandom } from "./real-clock.js";
import { type RedisEngine, RedisServer } from "./redis-server.js";

/** A store on a real server, with what a test wants to see of it. */
export interface TestRedisStore {
  readonly store: RedisLimitStore;
  readonly connections: RedisConnections;
  readonly events: RedisEvent[];
  /** Values under our keys that were not ours, as the store reported them. */
  readonly badBuckets: { count: number };
}

/** Opens a store on the server; with `verify` it is known to be well before this resolves. */
export async function openTestStore(
  server: Pick<RedisServer, "port">,
  options: { readonly target?: Partial<RedisTarget>; readonly isVerified?: boolean } = {},
): Promise<TestRedisStore> {
  const events: RedisEvent[] = [];
  const connections = openRedis({
    target: { ...loopbackTarget(server.port), ...options.target },
    clock: realClock,
    random: realRandom,
    onEvent: (event) => events.push(event),
  });
  const badBuckets = { count: 0 };
  const store = new RedisLimitStore({
    connections,
    onBadBuckets: (count) => {
      badBuckets.count += count;
    },
  });
  if (options.isVerified ?? true) await store.verify(soon());
  return { store, connections, events, badBuckets };
}

/** A server of its own for the tests of one `describe`, and a store on it. */
export interface SharedTestStore {
  readonly server: RedisServer;
  readonly opened: TestRedisStore;
  /** A connection of the test's own. */
  readonly control: Redis;
}

/** Starts both before the tests that stand beside this call, and stops them after the last one. */
export function shareTestStore(engine: RedisEngine): SharedTestStore {
  let server: RedisServer | undefined;
  let opened: TestRedisStore | undefined;
  let control: Redis | undefined;
  beforeAll(async () => {
    server = await RedisServer.start({ engine });
    opened = await openTestStore(server);
    control = server.client();
  });
  afterAll(async () => {
    await opened?.store.close();
    await server?.stop();
  });
  return {
    get server() {
      return started(server);
    },
    get opened() {
      return started(opened);
    },
    get control() {
      return started(control);
    },
  };
}

function started<T>(one: T | undefined): T {
  if (one === undefined) throw new Error("ask for it inside of a test");
  return one;
}

/** A bucket as the scripts store it; without an expiry it is given one when it is next charged. */
export function storedValue({ level, tUs }: Bucket, expiresMs = 0): Buffer {
  const value = Buffer.alloc(24);
  value.writeDoubleLE(level, 0);
  value.writeDoubleLE(tUs, 8);
  value.writeDoubleLE(expiresMs, 16);
  return value;
}

/** A server on this machine, without a password. */
export function loopbackTarget(port: number): RedisTarget {
  return { address: { kind: "tcp", host: "127.0.0.1", port, isTls: false }, database: 0 };
}

/** A deadline far enough for a busy machine. */
export function soon(): number {
  return realClock.monotonicMs() + 20_000;
}
