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

/** Kind of a server: a single one, the nodes of a cluster, or sentinels that know the primary. */
export type RedisType = "single" | "cluster" | "sentinel";

/** Kind of connection to a server. */
export type RedisSocketType = "auto" | "tcp" | "tls" | "unix";

/** Documentation of one Redis, which may differ for the second one. */
interface SideDocs {
  readonly type: string;
  readonly url: string;
  readonly socketType: string;
  readonly auth: string;
  readonly tls: string;
  readonly sentinelAuth: string;
  readonly timeout: string;
}

/** Prefix of one Redis's names: `REDIS`, or `REDIS_PERSECOND` for the second one. */
interface Side {
  readonly env: "REDIS" | "REDIS_PERSECOND";
  readonly docs: SideDocs;
}

const minuteMs = 60_000;

const main = sideRows({
  env: "REDIS",
  docs: {
    type:
      "The kind of server at REDIS_URL: a single server, nodes of a Redis Cluster, " +
      "or sentinels.",
    url:
      "One Redis: `host:port`, `redis://`, `rediss://` (TLS) with `user:password@` " +
      "and `/database`, or `unix:///path`. A cluster: some of its nodes, " +
      "`host:port,host:port`. Sentinels: the name of the primary, then the " +
      "sentinels, `name,host:port,host:port`.",
    socketType: "How Redis is reached; `auto` follows REDIS_URL.",
    auth: "Redis password, or `user:password`; takes precedence over REDIS_URL.",
    tls: "Uses TLS to Redis and its sentinels.",
    sentinelAuth: "Password of the sentinels, or `user:password`.",
    timeout:
      "The timeout of a Redis call; 0: none. A decision never waits longer than " +
      "HEADGATE_STORE_BUDGET_MS, so only smaller values have an effect on " +
      "decisions. It is also the connection timeout, between 100 ms and 1 s.",
  },
});

const second = sideRows({
  env: "REDIS_PERSECOND",
  docs: {
    type: "Like REDIS_TYPE, for the second Redis.",
    url: "Like REDIS_URL, for the second Redis.",
    socketType: "Like REDIS_SOCKET_TYPE, for the second Redis.",
    auth: "Like REDIS_AUTH, for the second Redis.",
    tls: "Uses TLS to the second Redis and its sentinels.",
    sentinelAuth: "Like REDIS_SENTINEL_AUTH, for the second Redis.",
    timeout: "Like REDIS_TIMEOUT, for the second Redis.",
  },
});

/** The Redis, and the second one for limits per second. */
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
      "CA certificates for every Redis and sentinel, as PEM, instead of the public " +
      "CAs. The files are read again for each new connection.",
  }),
  redisTlsClientCert: optionalTextOption({
    env: "REDIS_TLS_CLIENT_CERT",
    valueName: "PATH",
    docs: "Headgate's client certificate, as PEM, for servers that require one.",
  }),
  redisTlsClientKey: optionalTextOption({
    env: "REDIS_TLS_CLIENT_KEY",
    valueName: "PATH",
    docs: "Its private key, as PEM without a passphrase.",
  }),
  redisTlsSkipHostName: switchOption({
    env: "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION",
    defaultValue: false,
    docs: "Accepts a trusted certificate for any host name.",
  }),
  redisClusterTags: wholeNumberOption({
    env: "HEADGATE_REDIS_CLUSTER_TAGS",
    range: [1, clusterTagsMax],
    defaultValue: 12,
    docs:
      "Number of hash tags that spread the keys over a cluster: about four for " +
      "each shard. All replicas need the same number. If you change it, buckets " +
      "start empty.",
  }),
  redisPerSecond: switchOption({
    env: "REDIS_PERSECOND",
    defaultValue: false,
    docs: "Keeps limits with a period of one second in a second Redis, at REDIS_PERSECOND_URL.",
  }),
  redisPerSecondType: second.type,
  redisPerSecondUrl: second.url,
  redisPerSecondSocketType: second.socketType,
  redisPerSecondAuth: second.auth,
  redisPerSecondSentinelAuth: second.sentinelAuth,
  redisPerSecondTimeoutMs: second.timeoutMs,
  redisPerSecondTls: second.tls,
} as const;

/** Settings of envoyproxy/ratelimit for Redis, and why they have no effect here. */
export const redisIgnoredRows: readonly IgnoredOptionRow[] = [
  {
    names: bothSides("POOL_SIZE"),
    reason:
      "one connection carries all decisions in batches; more connections would " +
      "only make the batches smaller",
  },
  {
    names: [...bothSides("POOL_ON_EMPTY_BEHAVIOR"), ...bothSides("POOL_ON_EMPTY_WAIT_DURATION")],
    reason:
      "there is no pool that could run empty; decisions that Redis does not answer " +
      "in time use `on_store_failure`",
  },
  {
    names: [...bothSides("PIPELINE_WINDOW"), ...bothSides("PIPELINE_LIMIT")],
    reason:
      "a batch contains what arrives in one turn of the event loop, so nothing waits for a window",
  },
  {
    names: bothSides("CLUSTER_PIPELINE_PARALLELISM"),
    reason: "all nodes of a batch are always called at the same time",
  },
  {
    names: ["REDIS_HEALTH_CHECK_ACTIVE_CONNECTION"],
    reason:
      "a replica without Redis still answers, with `on_store_failure`, and an " +
      "outage must not remove all replicas: `/readyz` reports `degraded`",
  },
  {
    names: [
      "REDIS_STARTUP_INITIAL_INTERVAL",
      "REDIS_STARTUP_MAX_INTERVAL",
      "REDIS_STARTUP_MAX_ELAPSED_TIME",
    ],
    reason:
      "the start waits at most two seconds for Redis, continues without it, and " +
      "keeps connecting",
  },
  {
    names: ["REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR"],
    reason: "a connection to a replica is always closed and reopened",
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
