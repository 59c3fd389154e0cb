import { clusterTagsMax } from "../../store/redis/cluster/cluster-tags.js";
import {
  choiceOption,
  durationOption,
  type IgnoredOptionRow,
  optionalTextOption,
  secretOption,
  switchOption,
  wholeNumberOption,
} from "./option.js";

/** Where a server is: one, the nodes of a cluster, or sentinels that know the way. */
export type RedisType = "single" | "cluster" | "sentinel";

/** How a server is reached. */
export type RedisSocketType = "auto" | "tcp" | "tls" | "unix";

/** What there is to say about one Redis, in words that may differ for the second one. */
interface SideDocs {
  readonly type: string;
  readonly url: string;
  readonly socketType: string;
  readonly auth: string;
  readonly tls: string;
  readonly sentinelAuth: string;
  readonly timeout: string;
}

/** Names of one Redis: `REDIS`, or `REDIS_PERSECOND` for the second one. */
interface Side {
  readonly env: "REDIS" | "REDIS_PERSECOND";
  readonly docs: SideDocs;
}

const minuteMs = 60_000;

const main = sideRows({
  env: "REDIS",
  docs: {
    type:
      "What is at REDIS_URL: one server, nodes of a Redis Cluster, or sentinels that know " +
      "where the primary is.",
    url:
      "One Redis: `host:port`, `redis://`, `rediss://` (TLS) with `user:password@` and " +
      "`/database`, or `unix:///path`. A cluster: some of its nodes, `host:port,host:port`. " +
      "Sentinels: the primary's name before them, `name,host:port,host:port`.",
    socketType: "How Redis is reached; `auto` goes by REDIS_URL.",
    auth: "Redis password, or `user:password`; wins over what REDIS_URL says.",
    tls: "Reaches Redis, and its sentinels, over TLS.",
    sentinelAuth: "Password of the sentinels, or `user:password`.",
    timeout:
      "The longest that a call to Redis may take. A decision waits no longer than " +
      "HEADGATE_STORE_BUDGET_MS either way, so less than that changes something, and more does " +
      "not. A connect may take as long, but 100 ms at least and 1 s at most. 0 is none.",
  },
});

const second = sideRows({
  env: "REDIS_PERSECOND",
  docs: {
    type: "As REDIS_TYPE, for the second Redis.",
    url: "As REDIS_URL, for the second Redis.",
    socketType: "As REDIS_SOCKET_TYPE, for the second Redis.",
    auth: "As REDIS_AUTH, for the second Redis.",
    tls: "Reaches the second Redis, and its sentinels, over TLS.",
    sentinelAuth: "As REDIS_SENTINEL_AUTH, for the second Redis.",
    timeout: "As REDIS_TIMEOUT, for the second Redis.",
  },
});

/** Where Redis is, and the second one for limits by the second. */
export const redisOptionRows = {
  redisType: main.type,
  redisUrl: main.url,
  redisSocketType: main.socketType,
  redisAuth: main.auth,
  redisSentinelAuth: main.sentinelAuth,
  redisTimeoutMs: main.timeoutMs,
  redisTls: main.tls,
  redisTlsCaCert: optionalTextOption({
    env: "REDIS_TLS_CACERT",
    valueName: "PATH",
    docs:
      "Authorities that vouch for every Redis and sentinel, as PEM, in place of the public ones. " +
      "These files are read again for each new connection.",
  }),
  redisTlsClientCert: optionalTextOption({
    env: "REDIS_TLS_CLIENT_CERT",
    valueName: "PATH",
    docs: "Our own certificate, as PEM, for servers that want one.",
  }),
  redisTlsClientKey: optionalTextOption({
    env: "REDIS_TLS_CLIENT_KEY",
    valueName: "PATH",
    docs: "Its private key, as PEM without a passphrase.",
  }),
  redisTlsSkipHostName: switchOption({
    env: "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION",
    defaultValue: false,
    docs: "Takes a trusted certificate whatever host name it is for.",
  }),
  redisClusterTags: wholeNumberOption({
    env: "HEADGATE_REDIS_CLUSTER_TAGS",
    range: [1, clusterTagsMax],
    defaultValue: 12,
    docs:
      "Hash tags that spread the keys over a cluster: about four a shard. All replicas need the " +
      "same number; with another one, buckets start empty.",
  }),
  redisPerSecond: switchOption({
    env: "REDIS_PERSECOND",
    defaultValue: false,
    docs: "Keeps limits whose period is one second in a second Redis, at REDIS_PERSECOND_URL.",
  }),
  redisPerSecondType: second.type,
  redisPerSecondUrl: second.url,
  redisPerSecondSocketType: second.socketType,
  redisPerSecondAuth: second.auth,
  redisPerSecondSentinelAuth: second.sentinelAuth,
  redisPerSecondTimeoutMs: second.timeoutMs,
  redisPerSecondTls: second.tls,
} as const;

/** What envoyproxy/ratelimit lets one set about Redis, and why it changes nothing here. */
export const redisIgnoredRows: readonly IgnoredOptionRow[] = [
  {
    names: bothSides("POOL_SIZE"),
    reason:
      "one connection carries all decisions, many at a time: more of them would only make " +
      "batches smaller",
  },
  {
    names: [...bothSides("POOL_ON_EMPTY_BEHAVIOR"), ...bothSides("POOL_ON_EMPTY_WAIT_DURATION")],
    reason:
      "there is no pool to run empty: what Redis does not answer in time is answered by " +
      "`on_store_failure`",
  },
  {
    names: [...bothSides("PIPELINE_WINDOW"), ...bothSides("PIPELINE_LIMIT")],
    reason: "a batch is what arrives in one turn of the event loop, so nobody waits for a window",
  },
  {
    names: bothSides("CLUSTER_PIPELINE_PARALLELISM"),
    reason: "all nodes that a batch needs are always asked at the same time",
  },
  {
    names: ["REDIS_HEALTH_CHECK_ACTIVE_CONNECTION"],
    reason:
      "a replica without Redis still answers, by `on_store_failure`, and one outage must not " +
      "take all replicas away: `/readyz` says `degraded`",
  },
  {
    names: [
      "REDIS_STARTUP_INITIAL_INTERVAL",
      "REDIS_STARTUP_MAX_INTERVAL",
      "REDIS_STARTUP_MAX_ELAPSED_TIME",
    ],
    reason:
      "the start waits two seconds at most for Redis, goes on without it, and keeps connecting",
  },
  {
    names: ["REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR"],
    reason: "a connection to a replica is always closed and made anew",
  },
];

function bothSides(name: string): readonly string[] {
  return [`REDIS_${name}`, `REDIS_PERSECOND_${name}`];
}

function sideRows({ env, docs }: Side) {
  return {
    type: choiceOption<RedisType>({
      env: `${env}_TYPE`,
      choices: ["single", "cluster", "sentinel"],
      defaultValue: "single",
      docs: docs.type,
    }),
    url: secretOption({ env: `${env}_URL`, valueName: "URL", docs: docs.url }),
    socketType: choiceOption<RedisSocketType>({
      env: `${env}_SOCKET_TYPE`,
      choices: ["auto", "tcp", "tls", "unix"],
      defaultValue: "auto",
      docs: docs.socketType,
    }),
    auth: secretOption({ env: `${env}_AUTH`, valueName: "PASSWORD", docs: docs.auth }),
    sentinelAuth: secretOption({
      env: `${env}_SENTINEL_AUTH`,
      valueName: "PASSWORD",
      docs: docs.sentinelAuth,
    }),
    timeoutMs: durationOption({
      env: `${env}_TIMEOUT`,
      defaultText: "10s",
      defaultValue: 10_000,
      maxMs: 60 * minuteMs,
      docs: docs.timeout,
    }),
    tls: switchOption({
      env: `${env}_TLS`,
      defaultValue: false,
      docs: docs.tls,
    }),
  } as const;
}
