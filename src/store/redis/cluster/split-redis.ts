import type { Clock } from "../../../core/base/clock.js";
import { withoutSize } from "../../../core/limits/key.js";
import type { SplitPart } from "../../split/split-part.js";
import { SplitStore } from "../../split/split-store.js";
import type { RedisConnections } from "../connections.js";
import { RedisLimitStore } from "../redis-limit-store.js";
import { ClusterPart } from "./cluster-part.js";
import { clusterTags, tagIndex } from "./cluster-tags.js";

/** A single Redis, or a cluster. */
export interface RedisSide {
  readonly connections: RedisConnections;
  /** Number of hash tags of a cluster's keys, at least 1. Absent for a single server. */
  readonly tagCount?: number;
}

interface RedisStoreOptions {
  /** Keeps the limits. */
  readonly main: RedisSide;
  /** Keeps limits with a period of one second. Absent: `main` keeps them. */
  readonly perSecond?: RedisSide;
  /** Prefix of every key. Contains no braces, which would be taken for a hash tag. */
  readonly keyPrefix: string;
  readonly onBadBuckets: (count: number) => void;
  readonly clock: Clock;
}

/** A limit with this period is a per-second limit, whatever its name. */
const secondUs = 1_000_000;

/** Creates one store over all configured Redis servers and clusters. */
export function createRedisStore(options: RedisStoreOptions): RedisLimitStore | SplitStore {
  const { main, perSecond, keyPrefix, onBadBuckets, clock } = options;
  if (main.tagCount === undefined && perSecond === undefined) {
    return new RedisLimitStore({ connections: main.connections, keyPrefix, onBadBuckets });
  }
  const mainParts = partsOf(main, options);
  const secondParts = perSecond === undefined ? [] : partsOf(perSecond, options);
  const mainCount = mainParts.length;
  const secondCount = secondParts.length;
  return new SplitStore({
    parts: [...mainParts, ...secondParts],
    partOf: ({ key, lastKey = key, periodUs }) =>
      secondCount > 0 && periodUs === secondUs
        ? mainCount + tagIndex(lastKey, secondCount)
        : tagIndex(lastKey, mainCount),
    partsOfKey: (key) => {
      const parts = new Set<number>();
      for (const tagged of [key, withoutSize(key)]) {
        parts.add(tagIndex(tagged, mainCount));
        if (secondCount > 0) parts.add(mainCount + tagIndex(tagged, secondCount));
      }
      return [...parts];
    },
    clock,
  });
}

function partsOf({ connections, tagCount }: RedisSide, options: RedisStoreOptions): SplitPart[] {
  const { keyPrefix, onBadBuckets } = options;
  if (tagCount === undefined)
    return [new RedisLimitStore({ connections, keyPrefix, onBadBuckets })];
  return clusterTags(tagCount).map((tag) => {
    const tagged = { connections, keyPrefix: `${keyPrefix}{${tag}}`, onBadBuckets };
    return new ClusterPart(new RedisLimitStore(tagged));
  });
}
