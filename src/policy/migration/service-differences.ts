import { type DifferenceRow, joined } from "./difference-row.js";

/** Differences in how the process runs, regardless of its files. */
export const serviceDifferenceRows = {
  "new-counters": {
    kind: "different",
    reference: "Builds keys from the domain, the entries and the start of the window.",
    headgate: joined(
      "Uses its own keys below `CACHE_KEY_PREFIX`, so both can share one Redis. Every",
      "limit is unused on the day you migrate, and again if you go back.",
    ),
  },
  "store-budget": {
    kind: "better",
    reference: "Waits up to `REDIS_TIMEOUT` for Redis: 10 s, while Envoy waits 20 ms.",
    headgate: joined(
      "Waits 10 ms (`HEADGATE_STORE_BUDGET_MS`), at most 60 % of Envoy's timeout, and",
      "then answers with `on_store_failure`. After repeated failures it probes with one",
      "call at a time.",
    ),
  },
  "start-without-redis": {
    kind: "different",
    reference: "Does not start, or starts late, while Redis is unreachable.",
    headgate: joined(
      "Starts, answers with `on_store_failure`, and recovers with Redis. A wrong",
      "password or a missing permission ends the start.",
    ),
  },
  health: {
    kind: "different",
    reference: joined(
      "Can become unhealthy while Redis is unreachable",
      "(`REDIS_HEALTH_CHECK_ACTIVE_CONNECTION`): all replicas at once.",
    ),
    headgate:
      "Stays healthy, because it still answers. `/readyz` reports `degraded`, with status 200.",
  },
  "error-codes": {
    kind: "better",
    reference: joined(
      "Fails calls with gRPC status UNKNOWN, counts `redis_error` or `service_error`, and",
      "answers 400 for both on `/json`.",
    ),
    headgate: joined(
      "Fails calls with UNAVAILABLE, INVALID_ARGUMENT and so on, and with 503 or 400 on",
      "`/json`. Each cause has a metric label, and each Redis cause a log line with a",
      "remedy.",
    ),
  },
  "refusal-memory": {
    kind: "better",
    reference: joined(
      "Caches over-limit keys for the rest of the unit if `LOCAL_CACHE_SIZE_IN_BYTES` is",
      "set. It does not see a raised limit or a reset key until then.",
    ),
    headgate: "Always caches them, until the request may fit again, and for at most one second.",
  },
  "merged-metadata": {
    kind: "better",
    reference: joined(
      "Merges a rule's nested `metadata` into that of the rule before it permanently.",
      "Later responses of that rule contain both.",
    ),
    headgate: "Merges the same way for one response, and does not change the rules.",
  },
  "first-policy": {
    kind: "different",
    reference: "Opens its ports when the control plane has sent the first policy.",
    headgate: joined(
      "Opens them at once. Until the first policy, calls fail with UNAVAILABLE, and",
      "health is NOT_SERVING.",
    ),
  },
  "control-plane-trust": {
    kind: "stricter",
    reference: "Trusts public CAs in addition to `CONFIG_GRPC_XDS_SERVER_TLS_CACERT`.",
    headgate: "Trusts only the configured CAs.",
  },
  "growing-waits": {
    kind: "better",
    reference: "Multiplies each wait by `XDS_CLIENT_BACKOFF_RANDOM_FACTOR`, which is 0.5.",
    headgate: "Uses 2 for a factor up to 1, so that waits grow.",
  },
  "client-trust": {
    kind: "stricter",
    reference: joined(
      "Trusts clients of public CAs in addition to `GRPC_CLIENT_TLS_CACERT`, and looks",
      "up `GRPC_CLIENT_TLS_SAN` only in DNS names.",
    ),
    headgate: joined(
      "Trusts only the configured CAs. The name may also be a URI (`spiffe://...`), an",
      "IP or an email address.",
    ),
  },
  "cipher-suites": {
    kind: "stricter",
    reference: "Accepts TLS 1.2 cipher suites without authenticated encryption.",
    headgate: "Accepts TLS 1.3, and the TLS 1.2 suites that HTTP/2 allows.",
  },
  "debug-port": {
    kind: "different",
    reference: "Opens its debug port to anyone who can reach it, with Go runtime profiles.",
    headgate: joined(
      "Opens it on loopback only. Profiles are Node's, off by default, and for operators",
      "only: `/debug/pprof/` lists them.",
    ),
    choice: "`DEBUG_HOST=0.0.0.0`, `HEADGATE_DEBUG_PROFILES=true`",
  },
  "statsd-default": {
    kind: "different",
    reference: "Sends statistics to StatsD on localhost, unless `USE_STATSD=false`.",
    headgate: "Sends statistics only if `STATSD_HOST` is set.",
    choice: "`USE_STATSD=true`",
  },
  "missing-statistics": {
    kind: "different",
    reference: "Has statistics of the Go runtime, the loader, the cache and Memcached.",
    headgate: joined(
      "Has no `ratelimit.go.*`, `runtime.*`, `ratelimit.localcache.*` and",
      "`ratelimit.memcache.*`. `/metrics` contains Node's own.",
    ),
  },
  "bounded-statistics": {
    kind: "better",
    reference: joined(
      "Creates a statistic for each domain that callers send, and for each value if",
      "`detailed_metric` is set.",
    ),
    headgate: joined(
      "Counts unknown domains as `unknown`, and values of at most 1,000 paths. Further",
      "values count under their rule.",
    ),
  },
  memcached: {
    kind: "stricter",
    reference: "Keeps counters in Memcached with `BACKEND_TYPE=memcache`.",
    headgate: "Refuses to start, and names the alternative.",
  },
} as const satisfies Record<string, DifferenceRow>;
