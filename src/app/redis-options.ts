import { clusterTagsMax } from "../store/redis/cluster-tags.js";
import { choiceOption, secretOption, switchOption, wholeNumberOption } from "./option.js";

/** Where a server is: one, or the nodes of a cluster. */
export type RedisType = "single" | "cluster";

/** How a server is reached. */
export type RedisSocketType = "auto" | "tcp" | "tls" | "unix";

const sentinelRefusal = new Map([
  ["sentinel", "sentinel is not supported yet: use single, at an address that follows the primary"],
]);

/** Where Redis is, and the second one for limits by the second. */
export const redisOptionRows = {
  redisType: choiceOption<RedisType>({
    section: "Store",
    env: "REDIS_TYPE",
    flag: "redis-type",
    choices: ["single", "cluster"],
    refusals: sentinelRefusal,
    defaultValue: "single",
    docs: "What is at REDIS_URL: one server, or nodes of a Redis Cluster.",
  }),
  redisUrl: secretOption({
    section: "Store",
    env: "REDIS_URL",
    valueName: "URL",
    docs:
      "One Redis: `host:port`, `redis://`, `rediss://` (TLS) with `user:password@` and " +
      "`/database`, or `unix:///path`. A cluster: some of its nodes, `host:port,host:port`.",
  }),
  redisSocketType: choiceOption<RedisSocketType>({
    section: "Store",
    env: "REDIS_SOCKET_TYPE",
    flag: "redis-socket-type",
    choices: ["auto", "tcp", "tls", "unix"],
    defaultValue: "auto",
    docs: "How Redis is reached; `auto` goes by REDIS_URL.",
  }),
  redisAuth: secretOption({
    section: "Store",
    env: "REDIS_AUTH",
    valueName: "PASSWORD",
    docs: "Redis password, or `user:password`; wins over what REDIS_URL says.",
  }),
  redisTls: switchOption({
    section: "Store",
    env: "REDIS_TLS",
    flag: "redis-tls",
    defaultValue: false,
    docs: "Reaches Redis over TLS.",
  }),
  redisClusterTags: wholeNumberOption({
    section: "Store",
    env: "HEADGATE_REDIS_CLUSTER_TAGS",
    flag: "redis-cluster-tags",
    min: 1,
    max: clusterTagsMax,
    defaultValue: 12,
    docs:
      "Hash tags that spread the keys over a cluster: about four a shard. All replicas need the " +
      "same number; with another one, buckets start empty.",
  }),
  redisPerSecond: switchOption({
    section: "Store",
    env: "REDIS_PERSECOND",
    flag: "redis-persecond",
    defaultValue: false,
    docs: "Keeps limits whose period is one second in a second Redis, at REDIS_PERSECOND_URL.",
  }),
  redisPerSecondType: choiceOption<RedisType>({
    section: "Store",
    env: "REDIS_PERSECOND_TYPE",
    flag: "redis-persecond-type",
    choices: ["single", "cluster"],
    refusals: sentinelRefusal,
    defaultValue: "single",
    docs: "As REDIS_TYPE, for the second Redis.",
  }),
  redisPerSecondUrl: secretOption({
    section: "Store",
    env: "REDIS_PERSECOND_URL",
    valueName: "URL",
    docs: "As REDIS_URL, for the second Redis.",
  }),
  redisPerSecondSocketType: choiceOption<RedisSocketType>({
    section: "Store",
    env: "REDIS_PERSECOND_SOCKET_TYPE",
    flag: "redis-persecond-socket-type",
    choices: ["auto", "tcp", "tls", "unix"],
    defaultValue: "auto",
    docs: "As REDIS_SOCKET_TYPE, for the second Redis.",
  }),
  redisPerSecondAuth: secretOption({
    section: "Store",
    env: "REDIS_PERSECOND_AUTH",
    valueName: "PASSWORD",
    docs: "As REDIS_AUTH, for the second Redis.",
  }),
  redisPerSecondTls: switchOption({
    section: "Store",
    env: "REDIS_PERSECOND_TLS",
    flag: "redis-persecond-tls",
    defaultValue: false,
    docs: "Reaches the second Redis over TLS.",
  }),
} as const;
