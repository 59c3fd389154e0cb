import { requestBytesBounds } from "../../policy/cel/request-bytes.js";
import { optionalAddressOption } from "./address-option.js";
import { adminOptionRows } from "./admin-options.js";
import { consoleOptionRows } from "./console-options.js";
import { controlPortOptionRows } from "./control-port-options.js";
import { decisionOptionRows, refusalOptionRows } from "./decision-options.js";
import {
  choiceOption,
  durationOption,
  type OptionRow,
  optionalTextOption,
  switchOption,
  textOption,
  wholeNumberOption,
} from "./option.js";
import { redisOptionRows } from "./redis-options.js";
import { signalOptionRows } from "./signal-options.js";
import { statsOptionRows } from "./stats-options.js";
import { tlsOptionRows } from "./tls-options.js";
import { tracingOptionRows } from "./tracing-options.js";
import { policyStartOptionRows, xdsOptionRows } from "./xds-options.js";

const portMax = 65_535;
const dayMs = 86_400_000;

/** Memcached cannot decide a limit in one step. */
const memcacheRefusal =
  "is memcache, which is not supported: keep limits in Redis or Valkey (BACKEND_TYPE=redis, " +
  "REDIS_URL=host:port), or without one in each process by itself (BACKEND_TYPE=memory)";

/**
 * Every setting of the process. Flags win over the environment, which wins over the defaults here.
 * Names without HEADGATE_ are those of envoyproxy/ratelimit, and mean what they mean there.
 */
const optionRows = {
  policy: optionalTextOption({
    section: "Policy",
    env: "HEADGATE_POLICY",
    flag: "policy",
    valueName: "PATH",
    docs:
      "The policy: a YAML file, or a directory whose `*.yaml` and `*.yml` files are read " +
      "together. Without it, the directory that the three RUNTIME_ names make.",
  }),
  runtimeRoot: textOption({
    section: "Policy",
    env: "RUNTIME_ROOT",
    flag: "runtime-root",
    valueName: "DIRECTORY",
    defaultValue: "/srv/runtime_data/current",
    docs: "Where configuration is mounted; often a symbolic link that is swapped.",
  }),
  runtimeSubdirectory: textOption({
    section: "Policy",
    env: "RUNTIME_SUBDIRECTORY",
    flag: "runtime-subdirectory",
    valueName: "NAME",
    defaultValue: "",
    docs: "A directory below RUNTIME_ROOT.",
  }),
  runtimeAppDirectory: textOption({
    section: "Policy",
    env: "RUNTIME_APPDIRECTORY",
    flag: "runtime-appdirectory",
    valueName: "NAME",
    defaultValue: "config",
    docs: "The directory below RUNTIME_ROOT and RUNTIME_SUBDIRECTORY that holds the policy files.",
  }),
  runtimeWatchRoot: switchOption({
    section: "Policy",
    env: "RUNTIME_WATCH_ROOT",
    flag: "runtime-watch-root",
    defaultValue: true,
    docs:
      "Whether a swap of RUNTIME_ROOT itself is watched for at once. The policy directory is " +
      "watched either way, and read again every 10 s.",
  }),
  runtimeIgnoreDotFiles: switchOption({
    section: "Policy",
    env: "RUNTIME_IGNOREDOTFILES",
    flag: "runtime-ignoredotfiles",
    defaultValue: false,
    docs:
      "Whether files and directories below RUNTIME_APPDIRECTORY whose names begin with a dot are " +
      "left out. Those that begin with two dots, as in a ConfigMap, always are.",
  }),
  ...policyStartOptionRows,
  ...xdsOptionRows,
  host: textOption({
    section: "Listening",
    env: "HOST",
    flag: "host",
    valueName: "ADDRESS",
    defaultValue: "0.0.0.0",
    docs: "Where HTTP listens: `/json`, health and metrics.",
  }),
  port: wholeNumberOption({
    section: "Listening",
    env: "PORT",
    flag: "port",
    min: 0,
    max: portMax,
    defaultValue: 8080,
    docs: "HTTP port; 0 takes a free one.",
  }),
  monitoringAddress: optionalAddressOption({
    section: "Listening",
    env: "HEADGATE_MONITORING_ADDR",
    flag: "monitoring-addr",
    defaultValue: undefined,
    docs:
      "A second place for health and metrics, `host:port`, without `/json`: what probes and " +
      "scrapers need to reach and nothing else. `:port` is all addresses, port 0 a free one. " +
      "Empty: none.",
  }),
  httpJson: switchOption({
    section: "Listening",
    env: "HEADGATE_JSON",
    flag: "json",
    defaultValue: true,
    docs:
      "Whether `POST /json` decides. It asks nobody who they are, so where clients of gRPC need " +
      "certificates (GRPC_CLIENT_TLS_CACERT) it never does.",
  }),
  grpcHost: textOption({
    section: "Listening",
    env: "GRPC_HOST",
    flag: "grpc-host",
    valueName: "ADDRESS",
    defaultValue: "0.0.0.0",
    docs: "Where gRPC listens: RateLimitService and health.",
  }),
  grpcPort: wholeNumberOption({
    section: "Listening",
    env: "GRPC_PORT",
    flag: "grpc-port",
    min: 0,
    max: portMax,
    defaultValue: 8081,
    docs: "gRPC port; 0 takes a free one.",
  }),
  ...tlsOptionRows,
  connectionsPerAddressMax: wholeNumberOption({
    section: "Listening",
    env: "HEADGATE_CONNECTIONS_PER_ADDRESS_MAX",
    flag: "connections-per-address-max",
    min: 1,
    max: 20_000,
    defaultValue: 2_500,
    docs:
      "Connections that one address may have open, on the gRPC port and on the control port. " +
      "Raise it where all Envoys come through one load balancer.",
  }),
  ...controlPortOptionRows,
  ...adminOptionRows,
  ...consoleOptionRows,
  grpcConnectionAgeMsMax: durationOption({
    section: "Listening",
    env: "GRPC_MAX_CONNECTION_AGE",
    flag: "grpc-max-connection-age",
    defaultText: "24h",
    defaultValue: dayMs,
    maxMs: 20 * dayMs,
    docs: "Age at which a gRPC connection is asked to go, plus or minus 10 %.",
  }),
  grpcConnectionAgeGraceMs: durationOption({
    section: "Listening",
    env: "GRPC_MAX_CONNECTION_AGE_GRACE",
    flag: "grpc-max-connection-age-grace",
    defaultText: "1h",
    defaultValue: dayMs / 24,
    maxMs: 20 * dayMs,
    docs: "How long calls on such a connection may still take.",
  }),
  ...decisionOptionRows,
  backendType: choiceOption({
    section: "Store",
    env: "BACKEND_TYPE",
    flag: "backend-type",
    choices: ["auto", "redis", "memory"],
    refusals: new Map([["memcache", memcacheRefusal]]),
    defaultValue: "auto",
    docs:
      "Where limits are kept; `auto` is `redis` with REDIS_URL, else `memory`, which no other " +
      "replica shares.",
  }),
  ...redisOptionRows,
  keyPrefix: textOption({
    section: "Store",
    env: "CACHE_KEY_PREFIX",
    flag: "cache-key-prefix",
    valueName: "TEXT",
    defaultValue: "headgate:",
    docs: "What every Redis key begins with. Replicas that share limits share it.",
  }),
  storeBudgetMs: wholeNumberOption({
    section: "Store",
    env: "HEADGATE_STORE_BUDGET_MS",
    flag: "store-budget-ms",
    min: 1,
    max: 10_000,
    defaultValue: 10,
    docs:
      "The longest a decision waits for Redis, in milliseconds; never more than 60 % of the " +
      "caller's own deadline.",
  }),
  replicas: wholeNumberOption({
    section: "Store",
    env: "HEADGATE_REPLICAS",
    flag: "replicas",
    min: 1,
    max: 10_000,
    defaultValue: 1,
    docs:
      "How many replicas share the limits. While Redis is away each answers with its share by " +
      "the larger of this and the last number seen.",
  }),
  memoryKeysMax: wholeNumberOption({
    section: "Store",
    env: "HEADGATE_MEMORY_KEYS_MAX",
    flag: "memory-keys-max",
    min: 1_000,
    max: 10_000_000,
    defaultValue: 1_000_000,
    docs:
      "The most keys the embedded store holds, about 50 bytes each and as much for the request " +
      "that asks. A second one, for the local shares while the store is away, holds as many, but " +
      "never more than 200,000.",
  }),
  newKeysPerSecondMax: wholeNumberOption({
    section: "Store",
    env: "HEADGATE_NEW_KEYS_PER_SECOND_MAX",
    flag: "new-keys-per-second-max",
    min: 1,
    max: 1_000_000_000,
    defaultValue: 10_000,
    docs:
      "New keys that one rule may bring a second; what is above shares one bucket, so that " +
      "a caller who makes up values cannot fill the store.",
  }),
  ...signalOptionRows,
  loopDelayMsMax: wholeNumberOption({
    section: "Overload",
    env: "HEADGATE_LOOP_DELAY_MS_MAX",
    flag: "loop-delay-ms-max",
    min: 10,
    max: 600_000,
    defaultValue: 100,
    docs:
      "Lateness of the event loop, in milliseconds, that counts. Once it was late for a second " +
      "more than in time, which no single stall is, Redis is not asked: limits answer by their " +
      "on_store_failure, and admission as its `ownOverload` says, until it keeps up again.",
  }),
  requestsInFlightMax: wholeNumberOption({
    section: "Overload",
    env: "HEADGATE_REQUESTS_IN_FLIGHT_MAX",
    flag: "requests-in-flight-max",
    min: 1,
    max: 1_000_000,
    defaultValue: 20_000,
    docs:
      "Requests that may be in work at a time, and together take no more than an eighth of the " +
      "heap; above, and until half of it is answered, limits answer by their on_store_failure.",
  }),
  memoryBytesMax: wholeNumberOption({
    section: "Overload",
    env: "HEADGATE_MEMORY_BYTES_MAX",
    flag: "memory-bytes-max",
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    defaultValue: 0,
    docs:
      "Memory that the process may have, in bytes; 0: as much as its container (cgroup). With " +
      "nine tenths of it resident and half of it in use, or 0.85 of the heap in use, calls are " +
      "answered unread.",
  }),
  permitLeaseMsMax: wholeNumberOption({
    section: "Overload",
    env: "HEADGATE_PERMIT_LEASE_MS_MAX",
    flag: "permit-lease-ms-max",
    min: 1_000,
    max: dayMs,
    defaultValue: 300_000,
    docs:
      "How long a request may hold a permit, in milliseconds, whose service has no timeout " +
      "(`timeouts.request: 0`), unless its ext_proc stream ends before. Others hold it for that " +
      "timeout, or their caller's where that is less, but for a minute at least.",
  }),
  permitsPeerPercentMax: wholeNumberOption({
    section: "Overload",
    env: "HEADGATE_PERMITS_PEER_PERCENT_MAX",
    flag: "permits-peer-percent-max",
    min: 1,
    max: 100,
    defaultValue: 100,
    docs:
      "The part of a service's permits in a replica that one client of the gRPC port may have in " +
      "use, in percent, over all its connections: by its certificate, or without one by its " +
      "address. What it asks for beyond that is refused, and does not wait. Lower it where many " +
      "Envoys have certificates or addresses of their own.",
  }),
  requestBytesMax: wholeNumberOption({
    section: "Overload",
    env: "HEADGATE_REQUEST_BYTES_MAX",
    flag: "request-bytes-max",
    min: requestBytesBounds.min,
    max: requestBytesBounds.max,
    defaultValue: requestBytesBounds.defaultValue,
    docs:
      "The largest message on the gRPC port, in bytes: what is larger is over the limit. Raise " +
      "it where `max_request_headers_kb` of your Envoys is above 60, to four times as much.",
  }),
  drainDelayMs: wholeNumberOption({
    section: "Stopping",
    env: "HEADGATE_DRAIN_DELAY_MS",
    flag: "drain-delay-ms",
    min: 0,
    max: 600_000,
    defaultValue: 5_000,
    docs:
      "After SIGTERM (not Ctrl-C): how long calls are still taken while health says NOT_SERVING, " +
      "so that load balancers notice.",
  }),
  drainGraceMs: wholeNumberOption({
    section: "Stopping",
    env: "HEADGATE_DRAIN_GRACE_MS",
    flag: "drain-grace-ms",
    min: 0,
    max: 600_000,
    defaultValue: 10_000,
    docs:
      "How long calls in flight may take after that, before connections are cut and the exit " +
      "code is 1.",
  }),
  logLevel: choiceOption({
    section: "Logs",
    env: "LOG_LEVEL",
    flag: "log-level",
    choices: ["trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"],
    defaultValue: "info",
    valueName: "LEVEL",
    docs:
      "The least severe lines that are written: `trace`, `debug`, `info`, `warn` (or " +
      "`warning`), `error`, `fatal` (or `panic`).",
  }),
  logFormat: choiceOption({
    section: "Logs",
    env: "LOG_FORMAT",
    flag: "log-format",
    choices: ["auto", "json", "text"],
    defaultValue: "auto",
    docs: "One JSON object a line, or text for people; `auto` is text on a terminal.",
  }),
  ...refusalOptionRows,
  ...statsOptionRows,
  ...tracingOptionRows,
} as const;

/** A row's name, and its value's name in `Config`. */
export type OptionName = keyof typeof optionRows;

/** The value of each option. */
export type OptionValues = {
  readonly [Name in OptionName]: (typeof optionRows)[Name] extends OptionRow<infer T> ? T : never;
};

/** True for the name of a row. */
function isOptionName(name: string): name is OptionName {
  return Object.hasOwn(optionRows, name);
}

/** The names of all rows, in the order of help and documentation. */
export const optionNames: readonly OptionName[] = Object.keys(optionRows).filter(isOptionName);

/** A row whose value's type does not matter. */
export function optionRow(name: OptionName): OptionRow<unknown> {
  return optionRows[name];
}
