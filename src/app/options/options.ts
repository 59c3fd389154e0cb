import { keysOf } from "../../core/base/key-of.js";
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
  secretOption,
  switchOption,
  textOption,
  wholeNumberOption,
} from "./option.js";
import { otlpOptionRows } from "./otlp-options.js";
import { presetOptionRows } from "./presets.js";
import { redisOptionRows } from "./redis-options.js";
import { regionOptionRows } from "./region-options.js";
import { debugOptionRows, statsOptionRows } from "./stats-options.js";
import { tlsOptionRows } from "./tls-options.js";
import { tracingOptionRows } from "./tracing-options.js";
import { policyStartOptionRows, xdsOptionRows } from "./xds-options.js";

/** Access to readings for the concurrency algorithm `signal`, in addition to the policy. */
const signalOptionRows = {
  prometheusUrl: secretOption({
    env: "HEADGATE_PROMETHEUS_URL",
    valueName: "URL",
    docs:
      "The URL of Prometheus for a policy whose `prometheus` names no `server`, " +
      "such as `http://prometheus:9090`. It may contain a user and a password.",
  }),
  signalTokens: optionalTextOption({
    env: "HEADGATE_SIGNAL_TOKENS",
    valueName: "DIRECTORY",
    docs:
      "A directory of credentials for signal sources. The file with a host's " +
      "name contains the bearer token for it, which is sent over https or to " +
      "HEADGATE_PROMETHEUS_URL. For a Kafka broker it contains `user:password`. " +
      "`HOST.ca.pem`, `HOST.cert.pem` and `HOST.key.pem` contain a broker's CAs and the " +
      "client certificate. " +
      "Headgate reads the files for each poll.",
  }),
  hostRoot: textOption({
    env: "HEADGATE_HOST_ROOT",
    valueName: "DIRECTORY",
    defaultValue: "/",
    docs:
      "The directory that contains `proc` and `sys/fs/cgroup` for readings of the " +
      "host. Without `proc/self`, its `sys/fs/cgroup` is the cgroup that is read.",
  }),
} as const;

const portMax = 65_535;
const dayMs = 86_400_000;

/** Memcached cannot decide a limit in one step. */
const memcacheRefusal =
  "is memcache, which is not supported: use Redis or Valkey (BACKEND_TYPE=redis, " +
  "REDIS_URL=host:port), or keep limits in each process (BACKEND_TYPE=memory)";

const policyRows = {
  policy: optionalTextOption({
    env: "HEADGATE_POLICY",
    valueName: "PATH",
    docs:
      "The policy: a YAML file, or a directory whose `*.yaml` and `*.yml` files " +
      "form one policy. Default: the directory that the three RUNTIME_ names form.",
  }),
  runtimeRoot: textOption({
    env: "RUNTIME_ROOT",
    valueName: "DIRECTORY",
    defaultValue: "/srv/runtime_data/current",
    docs: "The directory where configuration is mounted; often a symbolic link that is swapped.",
  }),
  runtimeSubdirectory: textOption({
    env: "RUNTIME_SUBDIRECTORY",
    valueName: "NAME",
    defaultValue: "",
    docs: "A directory below RUNTIME_ROOT.",
  }),
  runtimeAppDirectory: textOption({
    env: "RUNTIME_APPDIRECTORY",
    valueName: "NAME",
    defaultValue: "config",
    docs:
      "The directory below RUNTIME_ROOT and RUNTIME_SUBDIRECTORY that contains the policy " +
      "files.",
  }),
  runtimeWatchRoot: switchOption({
    env: "RUNTIME_WATCH_ROOT",
    defaultValue: true,
    docs:
      "Whether Headgate notices a swap of RUNTIME_ROOT itself at once. It always " +
      "watches the policy directory, and reads it again every 10 s.",
  }),
  runtimeIgnoreDotFiles: switchOption({
    env: "RUNTIME_IGNOREDOTFILES",
    defaultValue: false,
    docs:
      "Whether to ignore files and directories below RUNTIME_APPDIRECTORY whose " +
      "names start with a dot. Names with two dots, as in a ConfigMap, are always " +
      "ignored.",
  }),
  ...policyStartOptionRows,
} as const;

const listeningRows = {
  host: textOption({
    env: "HOST",
    valueName: "ADDRESS",
    defaultValue: "0.0.0.0",
    docs: "The address of the HTTP port: `/json`, health and metrics. Empty: no HTTP port.",
  }),
  port: wholeNumberOption({
    env: "PORT",
    range: [0, portMax],
    defaultValue: 8080,
    docs: "HTTP port; 0 picks a free port.",
  }),
  monitoringAddress: optionalAddressOption({
    env: "HEADGATE_MONITORING_ADDR",
    defaultValue: undefined,
    docs:
      "A second address for health and metrics, `host:port`, without `/json`, for " +
      "probes and scrapers. `:port` binds all addresses, port 0 picks a free port. " +
      "Empty: none.",
  }),
  httpJson: switchOption({
    env: "HEADGATE_JSON",
    defaultValue: true,
    docs:
      "Whether `POST /json` is on. It has no authentication, so it is always off " +
      "if gRPC clients need certificates (GRPC_CLIENT_TLS_CACERT).",
  }),
  grpcHost: textOption({
    env: "GRPC_HOST",
    valueName: "ADDRESS",
    defaultValue: "0.0.0.0",
    docs: "The address of the gRPC port: RateLimitService and health.",
  }),
  grpcPort: wholeNumberOption({
    env: "GRPC_PORT",
    range: [0, portMax],
    defaultValue: 8081,
    docs: "gRPC port; 0 picks a free port.",
  }),
  ...tlsOptionRows,
  connectionsPerAddressMax: wholeNumberOption({
    env: "HEADGATE_CONNECTIONS_PER_ADDRESS_MAX",
    range: [1, 20_000],
    defaultValue: 2_500,
    docs:
      "Maximum connections of one address, on the gRPC port and on the control " +
      "port. Raise it if all Envoys come through one load balancer.",
  }),
  ...controlPortOptionRows,
  respAddress: optionalAddressOption({
    env: "HEADGATE_RESP_ADDR",
    defaultValue: undefined,
    docs:
      "The address of the RESP port (the Redis protocol), `host:port`, for clients that call " +
      "`CL.THROTTLE` (redis-cell). It has TLS if the gRPC port has. `:port` binds all " +
      "addresses, port 0 picks a free port. Empty: none.",
  }),
  respPassword: secretOption({
    env: "HEADGATE_RESP_PASSWORD",
    valueName: "SECRET",
    docs:
      "The password of the RESP port, which clients send with AUTH or HELLO as the " +
      "user `default`. Without it, everybody who reaches the port may call.",
  }),
  grpcConnectionAgeMsMax: durationOption({
    env: "GRPC_MAX_CONNECTION_AGE",
    defaultText: "24h",
    defaultValue: dayMs,
    maxMs: 20 * dayMs,
    docs: "Age at which a gRPC connection is asked to close, plus or minus 10 %.",
  }),
  grpcConnectionAgeGraceMs: durationOption({
    env: "GRPC_MAX_CONNECTION_AGE_GRACE",
    defaultText: "1h",
    defaultValue: dayMs / 24,
    maxMs: 20 * dayMs,
    docs: "How long calls on such a connection may still take.",
  }),
  ...debugOptionRows,
} as const;

const storeRows = {
  backendType: choiceOption({
    env: "BACKEND_TYPE",
    choices: ["auto", "redis", "memory"],
    refusals: new Map([["memcache", memcacheRefusal]]),
    defaultValue: "auto",
    docs:
      "Where limits are kept. `auto` is `redis` with REDIS_URL, otherwise " +
      "`memory`, which no other replica shares.",
  }),
  ...redisOptionRows,
  ...regionOptionRows,
  keyPrefix: textOption({
    env: "CACHE_KEY_PREFIX",
    valueName: "TEXT",
    defaultValue: "headgate:",
    docs: "The prefix of all Redis keys. Replicas that share limits must have the same prefix.",
  }),
  storeBudgetMs: wholeNumberOption({
    env: "HEADGATE_STORE_BUDGET_MS",
    range: [1, 10_000],
    defaultValue: 10,
    docs:
      "The longest time a decision waits for Redis, in milliseconds; never more " +
      "than 60 % of the caller's deadline.",
  }),
  budgetLeaseMs: wholeNumberOption({
    env: "HEADGATE_BUDGET_LEASE_MS",
    // Stores refuse longer times.
    range: [600, 600_000],
    defaultValue: 30_000,
    docs:
      "How long Redis keeps what a replica has reserved of budgets after its last sign of life, " +
      "in milliseconds.",
  }),
  replicas: wholeNumberOption({
    env: "HEADGATE_REPLICAS",
    range: [1, 10_000],
    defaultValue: 1,
    docs:
      "How many replicas share the limits. While Redis is unreachable, each " +
      "enforces its share, by the larger of this number and the last number seen.",
  }),
  memoryKeysMax: wholeNumberOption({
    env: "HEADGATE_MEMORY_KEYS_MAX",
    range: [1_000, 10_000_000],
    defaultValue: 1_000_000,
    docs:
      "The maximum number of keys in the embedded store, each about 50 bytes plus " +
      "its request. A second embedded store, for local shares while the store is " +
      "unreachable, has the same maximum, up to 200,000.",
  }),
  newKeysPerSecondMax: wholeNumberOption({
    env: "HEADGATE_NEW_KEYS_PER_SECOND_MAX",
    range: [1, 1_000_000_000],
    defaultValue: 10_000,
    docs:
      "New keys of one rule per second. Further new keys share one bucket, so that " +
      "callers with invented values cannot fill the store.",
  }),
} as const;

const overloadRows = {
  loopDelayMsMax: wholeNumberOption({
    env: "HEADGATE_LOOP_DELAY_MS_MAX",
    range: [10, 600_000],
    defaultValue: 100,
    docs:
      "The event loop lag, in milliseconds, that counts as late. If the loop is " +
      "late more often than in time for a second, Headgate does not call Redis " +
      "until it keeps up again. Limits then answer with on_store_failure, and " +
      "admission with `ownOverload`.",
  }),
  requestsInFlightMax: wholeNumberOption({
    env: "HEADGATE_REQUESTS_IN_FLIGHT_MAX",
    range: [1, 1_000_000],
    defaultValue: 20_000,
    docs:
      "Maximum requests in flight; together they use at most an eighth of the " +
      "heap. Above it, limits answer with on_store_failure until half of them are " +
      "answered.",
  }),
  cacheBytesMax: wholeNumberOption({
    env: "HEADGATE_CACHE_BYTES_MAX",
    range: [1_048_576, 1_073_741_824],
    defaultValue: 134_217_728,
    docs:
      "The most bytes of each of three caches: requests that were seen, what is known of their " +
      "keys, and frequent keys. Each also has at most an eighth or a sixteenth of the heap.",
  }),
  memoryBytesMax: wholeNumberOption({
    env: "HEADGATE_MEMORY_BYTES_MAX",
    range: [0, Number.MAX_SAFE_INTEGER],
    defaultValue: 0,
    docs:
      "The memory of the process, in bytes; 0: the limit of its container " +
      "(cgroup). If nine tenths of it are resident and half in use, or 0.85 of the " +
      "heap is in use, calls are answered without parsing.",
  }),
  permitLeaseMsMax: wholeNumberOption({
    env: "HEADGATE_PERMIT_LEASE_MS_MAX",
    range: [1_000, dayMs],
    defaultValue: 300_000,
    docs:
      "Maximum time that a request holds a permit, in milliseconds, if its service " +
      "has no timeout (`timeouts.request: 0`). Other requests hold it for at most " +
      "their timeout, but at least a minute. The end of the ext_proc stream " +
      "releases it earlier.",
  }),
  permitsPeerPercentMax: wholeNumberOption({
    env: "HEADGATE_PERMITS_PEER_PERCENT_MAX",
    range: [1, 100],
    defaultValue: 100,
    docs:
      "The share of a service's permits in a replica that one client of the gRPC " +
      "port may use, in percent, over all its connections. A client is a " +
      "certificate, or without one an address. Requests beyond it are refused " +
      "without waiting. Lower it if many Envoys have their own certificates or " +
      "addresses.",
  }),
  requestBytesMax: wholeNumberOption({
    env: "HEADGATE_REQUEST_BYTES_MAX",
    range: [requestBytesBounds.min, requestBytesBounds.max],
    defaultValue: requestBytesBounds.defaultValue,
    docs:
      "The largest message on the gRPC port, in bytes. A larger message counts as " +
      "over the limit. If `max_request_headers_kb` of your Envoys is above 60, set " +
      "four times as much.",
  }),
} as const;

const stoppingRows = {
  drainDelayMs: wholeNumberOption({
    env: "HEADGATE_DRAIN_DELAY_MS",
    range: [0, 600_000],
    defaultValue: 5_000,
    docs:
      "After SIGTERM (not Ctrl-C): how long calls are still accepted while health " +
      "is NOT_SERVING, so that load balancers notice.",
  }),
  drainGraceMs: wholeNumberOption({
    env: "HEADGATE_DRAIN_GRACE_MS",
    range: [0, 600_000],
    defaultValue: 10_000,
    docs:
      "How long calls in flight may then take, before connections are closed and " +
      "the exit code is 1.",
  }),
} as const;

const logRows = {
  logLevel: choiceOption({
    env: "LOG_LEVEL",
    choices: ["trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"],
    defaultValue: "info",
    valueName: "LEVEL",
    docs:
      "The minimum severity of log lines: `trace`, `debug`, `info`, `warn` (or " +
      "`warning`), `error`, `fatal` (or `panic`).",
  }),
  logFormat: choiceOption({
    env: "LOG_FORMAT",
    choices: ["auto", "json", "text"],
    defaultValue: "auto",
    docs:
      "The log format: one JSON object a line, or text for people. `auto` is text on a " +
      "terminal.",
  }),
  ...refusalOptionRows,
} as const;

const waitingRoomRows = {
  waitingRoomKeysFile: optionalTextOption({
    env: "HEADGATE_WAITING_ROOM_KEYS_FILE",
    valueName: "PATH",
    docs:
      "A file with the keys of waiting rooms, one of at least 32 characters in each line. The " +
      "first signs the tickets of visitors, and all verify them. Headgate reads it again when it " +
      "changes. Without it, each room has a key in the store.",
  }),
} as const;

const adminRows = { ...adminOptionRows, ...consoleOptionRows } as const;

/**
 * Every setting of the process. Flags take precedence over the environment, which takes precedence
 * over the preset, which takes precedence over the defaults here. Names without HEADGATE_ are those
 * of envoyproxy/ratelimit, and have the same meaning.
 */
const optionRows = {
  ...presetOptionRows,
  ...policyRows,
  ...xdsOptionRows,
  ...listeningRows,
  ...adminRows,
  ...decisionOptionRows,
  ...storeRows,
  ...signalOptionRows,
  ...waitingRoomRows,
  ...overloadRows,
  ...stoppingRows,
  ...logRows,
  ...statsOptionRows,
  ...tracingOptionRows,
  ...otlpOptionRows,
} as const;

/** The name of a row, and of its value in `Config`. */
export type OptionName = keyof typeof optionRows;

/** The value of each option. */
export type OptionValues = {
  readonly [Name in OptionName]: (typeof optionRows)[Name] extends OptionRow<infer T> ? T : never;
};

/** The names of all rows, by section of help and documentation, in order. */
export const optionSections: ReadonlyMap<string, readonly OptionName[]> = new Map(
  Object.entries({
    Preset: presetOptionRows,
    Policy: policyRows,
    "Control plane": xdsOptionRows,
    Listening: listeningRows,
    Admin: adminRows,
    Decisions: decisionOptionRows,
    Store: storeRows,
    Signals: signalOptionRows,
    Overload: overloadRows,
    Stopping: stoppingRows,
    Logs: logRows,
    Statistics: statsOptionRows,
    Tracing: tracingOptionRows,
    OpenTelemetry: otlpOptionRows,
  }).map(([section, rows]) => [section, keysOf(rows)]),
);

/** All names, in one list. */
export const optionNames: readonly OptionName[] = [...optionSections.values()].flat();

/** Returns a row whose value's type does not matter. */
export function optionRow(name: OptionName): OptionRow<unknown> {
  return optionRows[name];
}
