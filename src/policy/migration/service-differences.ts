import { type DifferenceRow, joined } from "./difference-row.js";

/** Differences in how the process runs, whatever its files say. */
export const serviceDifferenceRows = {
  "new-counters": {
    kind: "different",
    reference: "Names its keys by domain, entries and the window's beginning.",
    headgate: joined(
      "Has keys of its own below `CACHE_KEY_PREFIX`, so both may use one Redis. Every limit",
      "is unused on the day of the move, and again on the way back.",
    ),
  },
  "store-budget": {
    kind: "better",
    reference: "Waits for Redis as long as `REDIS_TIMEOUT` says: 10 s, when Envoy waits 20 ms.",
    headgate: joined(
      "Waits 10 ms (`HEADGATE_STORE_BUDGET_MS`), at most 60 % of what Envoy waits, then",
      "answers by `on_store_failure`. After repeated failures it probes, one call at a time.",
    ),
  },
  "start-without-redis": {
    kind: "different",
    reference: "Does not start, or not yet, while Redis is away.",
    headgate: joined(
      "Starts, answers by `on_store_failure`, and is well when Redis is. A wrong password or",
      "a missing right ends the start.",
    ),
  },
  health: {
    kind: "different",
    reference: joined(
      "Can be unhealthy while Redis is away (`REDIS_HEALTH_CHECK_ACTIVE_CONNECTION`): all",
      "replicas at once.",
    ),
    headgate: "Stays healthy, since it answers; `/readyz` says `degraded`, with status 200.",
  },
  "error-codes": {
    kind: "better",
    reference: joined(
      "Fails calls with gRPC status UNKNOWN, counts `redis_error` or `service_error`, and",
      "answers 400 for both on `/json`.",
    ),
    headgate: joined(
      "Fails calls with UNAVAILABLE, INVALID_ARGUMENT and so on, and 503 or 400 on `/json`;",
      "each cause has a label in the metrics, and those of Redis a line that says what to do.",
    ),
  },
  "refusal-memory": {
    kind: "better",
    reference: joined(
      "Remembers who is over for the rest of the unit, where `LOCAL_CACHE_SIZE_IN_BYTES`",
      "is set: a raised limit or a reset key is not seen until then.",
    ),
    headgate: "Remembers it always, until the request may fit again and for one second at most.",
  },
  "merged-metadata": {
    kind: "better",
    reference: joined(
      "Merges a rule's nested `metadata` into that of the rule before it for good: later",
      "responses of that rule say both.",
    ),
    headgate: "Merges the same way for one response, and leaves the rules as they are.",
  },
  "first-policy": {
    kind: "different",
    reference: "Opens its ports when the control plane has sent a first policy.",
    headgate: joined(
      "Opens them at once: until then calls fail with UNAVAILABLE, and health says",
      "NOT_SERVING.",
    ),
  },
  "control-plane-trust": {
    kind: "stricter",
    reference: "Trusts public authorities besides `CONFIG_GRPC_XDS_SERVER_TLS_CACERT`.",
    headgate: "Trusts the authorities named, and no others.",
  },
  "growing-waits": {
    kind: "better",
    reference: "Multiplies each further wait by `XDS_CLIENT_BACKOFF_RANDOM_FACTOR`, which is 0.5.",
    headgate: "Takes a factor up to 1 for 2, so that waits grow.",
  },
  "client-trust": {
    kind: "stricter",
    reference: joined(
      "Trusts clients of public authorities besides `GRPC_CLIENT_TLS_CACERT`, and finds",
      "`GRPC_CLIENT_TLS_SAN` among host names only.",
    ),
    headgate: joined(
      "Trusts the authorities named, and no others; the name may also be a URI (`spiffe://...`),",
      "an IP or a mail address.",
    ),
  },
  "cipher-suites": {
    kind: "stricter",
    reference: "Takes suites of TLS 1.2 without authenticated encryption.",
    headgate: "Takes TLS 1.3, and of 1.2 the suites that HTTP/2 allows.",
  },
  "debug-port": {
    kind: "different",
    reference: "Opens its debug port to everybody who reaches it, with profiles of Go's runtime.",
    headgate: joined(
      "Opens it to its own machine. Profiles are Node's, off, and for operators alone:",
      "`/debug/pprof/` lists them.",
    ),
    choice: "`DEBUG_HOST=0.0.0.0`, `HEADGATE_DEBUG_PROFILES=true`",
  },
  "statsd-default": {
    kind: "different",
    reference: "Sends statistics to a StatsD on its own machine, unless `USE_STATSD=false`.",
    headgate: "Sends none, unless `STATSD_HOST` is set.",
    choice: "`USE_STATSD=true`",
  },
  "missing-statistics": {
    kind: "different",
    reference: "Has statistics of Go's runtime, of its loader, of its cache and of Memcached.",
    headgate: joined(
      "Has no `ratelimit.go.*`, `runtime.*`, `ratelimit.localcache.*` and",
      "`ratelimit.memcache.*`; `/metrics` has Node's own.",
    ),
  },
  "bounded-statistics": {
    kind: "better",
    reference: joined(
      "Makes a statistic of each domain that callers make up, and of each value where",
      "`detailed_metric` asks for values.",
    ),
    headgate: joined(
      "Counts unknown domains as `unknown`, and values of 1,000 paths at most; more are",
      "counted by their rule.",
    ),
  },
  memcached: {
    kind: "stricter",
    reference: "Keeps counters in Memcached with `BACKEND_TYPE=memcache`.",
    headgate: "Refuses to start with it, and says what to use instead.",
  },
} as const satisfies Record<string, DifferenceRow>;
