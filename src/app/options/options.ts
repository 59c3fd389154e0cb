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
import { debugOptionRows, statsOptionRows } from "./stats-options.js";
import { tlsOptionRows } from "./tls-options.js";
import { tracingOptionRows } from "./tracing-options.js";
import { policyStartOptionRows, xdsOptionRows } from "./xds-options.js";

const portMax = 65_535;
const dayMs = 86_400_000;

/** Memcached cannot decide a limit in one step. */
const memcacheRefusal =
  "is memcache, which is not supported: keep limits in Redis or Valkey (BACKEND_TYPE=redis, " +
  "REDIS_URL=host:port), or without one in each process by itself (BACKEND_TYPE=memory)";

const policyRows = {
  policy: optionalTextOption({
    env: "HEADGATE_POLICY",
    valueName: "PATH",
    docs:
      "The policy: a YAML file, or a directory whose `*.yaml` and `*.yml` files are read " +
      "together. Without it, the directory that the three RUNTIME_ names make.",
  }),
  runtimeRoot: textOption({
    env: "RUNTIME_ROOT",
    valueName: "DIRECTORY",
    defaultValue: "/srv/runtime_data/current",
    docs: "Where configuration is mounted; often a symbolic link that is swapped.",
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
    docs: "The directory below RUNTIME_ROOT and RUNTIME_SUBDIRECTORY that holds the policy files.",
  }),
  runtimeWatchRoot: switchOption({
    env: "RUNTIME_WATCH_ROOT",
    defaultValue: true,
    docs:
      "Whether a swap of RUNTIME_ROOT itself is watched for at once. The policy directory is " +
      "watched either way, and read again every 10 s.",
  }),
  runtimeIgnoreDotFiles: switchOption({
    env: "RUNTIME_IGNOREDOTFILES",
    defaultValue: false,
    docs:
      "Whether files and directories below RUNTIME_APPDIRECTORY whose names begin with a dot are " +
      "left out. Those that begin with two dots, as in a ConfigMap, always are.",
  }),
  ...policyStartOptionRows,
} as const;

const listeningRows = {
  host: textOption({
    env: "HOST",
    valueName: "ADDRESS",
    defaultValue: "0.0.0.0",
    docs: "Where HTTP listens: `/json`, health and metrics.",
  }),
  port: wholeNumberOption({
    env: "PORT",
    range: [0, portMax],
    defaultValue: 8080,
    docs: "HTTP port; 0 takes a free one.",
  }),
  monitoringAddress: optionalAddressOption({
    env: "HEADGATE_MONITORING_ADDR",
    defaultValue: undefined,
    docs:
      "A second place for health and metrics, `host:port`, without `/json`: what probes and " +
      "scrapers need to reach and nothing else. `:port` is all addresses, port 0 a free one. " +
      "Empty: none.",
  }),
  httpJson: switchOption({
    env: "HEADGATE_JSON",
    defaultValue: true,
    docs:
      "Whether `POST /json` decides. It asks nobody who they are, so where clients of gRPC need " +
      "certificates (GRPC_CLIENT_TLS_CACERT) it never does.",
  }),
  grpcHost: textOption({
    env: "GRPC_HOST",
    valueName: "ADDRESS",
    defaultValue: "0.0.0.0",
    docs: "Where gRPC listens: RateLimitService and health.",
  }),
  grpcPort: wholeNumberOption({
    env: "GRPC_PORT",
    range: [0, portMax],
    defaultValue: 8081,
    docs: "gRPC port; 0 takes a free one.",
  }),
  ...tlsOptionRows,
  connectionsPerAddressMax: wholeNumberOption({
    env: "HEADGATE_CONNECTIONS_PER_ADDRESS_MAX",
    range: [1, 20_000],
    defaultValue: 2_500,
    docs:
      "Connections that one address may have open, on the gRPC port and on the control port. " +
      "Raise it where all Envoys come through one load balancer.",
  }),
  ...controlPortOptionRows,
  grpcConnectionAgeMsMax: durationOption({
    env: "GRPC_MAX_CONNECTION_AGE",
    defaultText: "24h",
    defaultValue: dayMs,
    maxMs: 20 * dayMs,
    docs: "Age at which a gRPC connection is asked to go, plus or minus 10 %.",
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
      "Where limits are kept; `auto` is `redis` with REDIS_URL, else `memory`, which no other " +
      "replica shares.",
  }),
  ...redisOptionRows,
  keyPrefix: textOption({
    env: "CACHE_KEY_PREFIX",
    valueName: "TEXT",
    defaultValue: "headgate:",
    docs: "What every Redis key begins with. Replicas that share limits share it.",
  }),
  storeBudgetMs: wholeNumberOption({
    env: "HEADGATE_STORE_BUDGET_MS",
    range: [1, 10_000],
    defaultValue: 10,
    docs:
      "The longest a decision waits for Redis, in milliseconds; never more than 60 % of the " +
      "caller's own deadline.",
  }),
  replicas: wholeNumberOption({
    env: "HEADGATE_REPLICAS",
    range: [1, 10_000],
    defaultValue: 1,
    docs:
      "How many replicas share the limits. While Redis is away each answers with its share by " +
      "the larger of this and the last number seen.",
  }),
  memoryKeysMax: wholeNumberOption({
    env: "HEADGATE_MEMORY_KEYS_MAX",
    range: [1_000, 10_000_000],
    defaultValue: 1_000_000,
    docs:
      "The most keys the embedded store holds, about 50 bytes each and as much for the request " +
      "that asks. A second one, for the local shares while the store is away, holds as many, but " +
      "never more than 200,000.",
  }),
  newKeysPerSecondMax: wholeNumberOption({
    env: "HEADGATE_NEW_KEYS_PER_SECOND_MAX",
    range: [1, 1_000_000_000],
    defaultValue: 10_000,
    docs:
      "New keys that one rule may bring a second; what is above shares one bucket, so that " +
      "a caller who makes up values cannot fill the store.",
  }),
} as const;

const overloadRows = {
  loopDelayMsMax: wholeNumberOption({
    env: "HEADGATE_LOOP_DELAY_MS_MAX",
    range: [10, 600_000],
    defaultValue: 100,
    docs:
      "Lateness of the event loop, in milliseconds, that counts. Once it was late for a second " +
      "more than in time, which no single stall is, Redis is not asked: limits answer by their " +
      "on_store_failure, and admission as its `ownOverload` says, until it keeps up again.",
  }),
  requestsInFlightMax: wholeNumberOption({
    env: "HEADGATE_REQUESTS_IN_FLIGHT_MAX",
    range: [1, 1_000_000],
    defaultValue: 20_000,
    docs:
      "Requests that may be in work at a time, and together take no more than an eighth of the " +
      "heap; above, and until half of it is answered, limits answer by their on_store_failure.",
  }),
  memoryBytesMax: wholeNumberOption({
    env: "HEADGATE_MEMORY_BYTES_MAX",
    range: [0, Number.MAX_SAFE_INTEGER],
    defaultValue: 0,
    docs:
      "Memory that the process may have, in bytes; 0: as much as its container (cgroup). With " +
      "nine tenths of it resident and half of it in use, or 0.85 of the heap in use, calls are " +
      "answered unread.",
  }),
  permitLeaseMsMax: wholeNumberOption({
    env: "HEADGATE_PERMIT_LEASE_MS_MAX",
    range: [1_000, dayMs],
    defaultValue: 300_000,
    docs:
      "How long a request may hold a permit, in milliseconds, whose service has no timeout " +
      "(`timeouts.request: 0`), unless its ext_proc stream ends before. Others hold it for that " +
      "timeout, or their caller's where that is less, but for a minute at least.",
  }),
  permitsPeerPercentMax: wholeNumberOption({
    env: "HEADGATE_PERMITS_PEER_PERCENT_MAX",
    range: [1, 100],
    defaultValue: 100,
    docs:
      "The part of a service's permits in a replica that one client of the gRPC port may have in " +
      "use, in percent, over all its connections: by its certificate, or without one by its " +
      "address. What it asks for beyond that is refused, and does not wait. Lower it where many " +
      "Envoys have certificates or addresses of their own.",
  }),
  requestBytesMax: wholeNumberOption({
    env: "HEADGATE_REQUEST_BYTES_MAX",
    range: [requestBytesBounds.min, requestBytesBounds.max],
    defaultValue: requestBytesBounds.defaultValue,
    docs:
      "The largest message on the gRPC port, in bytes: what is larger is over the limit. Raise " +
      "it where `max_request_headers_kb` of your Envoys is above 60, to four times as much.",
  }),
} as const;

const stoppingRows = {
  drainDelayMs: wholeNumberOption({
    env: "HEADGATE_DRAIN_DELAY_MS",
    range: [0, 600_000],
    defaultValue: 5_000,
    docs:
      "After SIGTERM (not Ctrl-C): how long calls are still taken while health says NOT_SERVING, " +
      "so that load balancers notice.",
  }),
  drainGraceMs: wholeNumberOption({
    env: "HEADGATE_DRAIN_GRACE_MS",
    range: [0, 600_000],
    defaultValue: 10_000,
    docs:
      "How long calls in flight may take after that, before connections are cut and the exit " +
      "code is 1.",
  }),
} as const;

const logRows = {
  logLevel: choiceOption({
    env: "LOG_LEVEL",
    choices: ["trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"],
    defaultValue: "info",
    valueName: "LEVEL",
    docs:
      "The least severe lines that are written: `trace`, `debug`, `info`, `warn` (or " +
      "`warning`), `error`, `fatal` (or `panic`).",
  }),
  logFormat: choiceOption({
    env: "LOG_FORMAT",
    choices: ["auto", "json", "text"],
    defaultValue: "auto",
    docs: "One JSON object a line, or text for people; `auto` is text on a terminal.",
  }),
  ...refusalOptionRows,
} as const;

const adminRows = { ...adminOptionRows, ...consoleOptionRows } as const;

/**
 * Every setting of the process. Flags win over the environment, which wins over the defaults here.
 * Names without HEADGATE_ are those of envoyproxy/ratelimit, and mean what they mean there.
 */
const optionRows = {
  ...policyRows,
  ...xdsOptionRows,
  ...listeningRows,
  ...adminRows,
  ...decisionOptionRows,
  ...storeRows,
  ...signalOptionRows,
  ...overloadRows,
  ...stoppingRows,
  ...logRows,
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

/** The names of all rows, by where they stand in help and documentation, in its order. */
export const optionSections: ReadonlyMap<string, readonly OptionName[]> = new Map(
  Object.entries({
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
  }).map(([section, rows]) => [section, Object.keys(rows).filter(isOptionName)]),
);

/** The same, in one list. */
export const optionNames: readonly OptionName[] = [...optionSections.values()].flat();

/** A row whose value's type does not matter. */
export function optionRow(name: OptionName): OptionRow<unknown> {
  return optionRows[name];
}
