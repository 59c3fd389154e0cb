import {
  choiceOption,
  decimalOption,
  durationOption,
  optionalTextOption,
  secretOption,
  switchOption,
  textOption,
  wholeNumberOption,
} from "./option.js";

/** Where a policy may come from. */
type ConfigType = "file" | "grpc_xds_sotw";

const hourMs = 3_600_000;

/** The largest message that may be allowed, in bytes. */
const messageBytesLimit = 268_435_456;

/** Where the policy comes from, and what holds until it is there. */
export const policyStartOptionRows = {
  configType: choiceOption<ConfigType>({
    env: "CONFIG_TYPE",
    choices: ["file", "grpc_xds_sotw"],
    defaultValue: "file",
    docs:
      "Where the policy comes from: `file`, or `grpc_xds_sotw`, a control plane that sends " +
      "`ratelimit.config.ratelimit.v3.RateLimitConfig` over aggregated discovery.",
  }),
  policySource: choiceOption<"files" | "store">({
    env: "HEADGATE_POLICY_SOURCE",
    choices: ["files", "store"],
    defaultValue: "files",
    docs:
      "Which policy holds: `files`, that of the files (or the control plane), or `store`, the " +
      "one that was applied last through the admin API, on all replicas of the store. With " +
      "`store` the files are what a new fleet begins with.",
  }),
  mergesDomains: switchOption({
    env: "MERGE_DOMAIN_CONFIG",
    defaultValue: false,
    docs: "Whether several files, or resources of a control plane, may add to one domain.",
  }),
  forceStart: switchOption({
    env: "FORCE_START_WITHOUT_INITIAL_CONFIG",
    defaultValue: false,
    docs:
      "Whether to serve before there is a policy; calls fail until then. Without it, missing or " +
      "wrong files end the start, and a control plane is waited for.",
  }),
  needsDomainForHealth: switchOption({
    env: "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED",
    defaultValue: false,
    docs: "Whether health says NOT_SERVING while the active policy holds no domain.",
  }),
} as const;

/** How the control plane is reached. */
export const xdsOptionRows = {
  xdsServer: textOption({
    env: "CONFIG_GRPC_XDS_SERVER_URL",
    valueName: "HOST:PORT",
    defaultValue: "localhost:18000",
    docs: "Where the control plane listens.",
  }),
  xdsNodeId: textOption({
    env: "CONFIG_GRPC_XDS_NODE_ID",
    valueName: "TEXT",
    defaultValue: "default",
    docs: "Who we say we are; control planes choose the policy by it.",
  }),
  xdsNodeMetadata: textOption({
    env: "CONFIG_GRPC_XDS_NODE_METADATA",
    valueName: "NAME=VALUE,...",
    defaultValue: "",
    docs: "What we say about us besides.",
  }),
  xdsHeaders: secretOption({
    env: "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
    valueName: "NAME:VALUE,...",
    docs: "Headers of the call: `name:value,name:value`, for example an access token.",
  }),
  xdsUseTls: switchOption({
    env: "CONFIG_GRPC_XDS_SERVER_USE_TLS",
    defaultValue: false,
    docs: "Reaches the control plane over TLS. Its files are read for each new connection.",
  }),
  xdsServerCaCert: optionalTextOption({
    env: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
    valueName: "PATH",
    docs: "Authorities that vouch for the control plane, as PEM, in place of those Node knows.",
  }),
  xdsServerSan: optionalTextOption({
    env: "CONFIG_GRPC_XDS_SERVER_TLS_SAN",
    valueName: "NAME",
    docs: "The name that its certificate must hold, in place of the host it is reached at.",
  }),
  xdsClientCert: optionalTextOption({
    env: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
    valueName: "PATH",
    docs: "The certificate that we show, as PEM; with its key.",
  }),
  xdsClientKey: optionalTextOption({
    env: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
    valueName: "PATH",
    docs: "Its private key, as PEM without a passphrase.",
  }),
  xdsConnectRetryMs: durationOption({
    env: "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
    defaultText: "3s",
    defaultValue: 3_000,
    maxMs: hourMs,
    docs: "The first wait when no connection can be made.",
  }),
  xdsBackoffInitialMs: durationOption({
    env: "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL",
    defaultText: "10s",
    defaultValue: 10_000,
    maxMs: hourMs,
    docs: "The first wait after a connection was lost.",
  }),
  xdsBackoffMsMax: durationOption({
    env: "XDS_CLIENT_BACKOFF_MAX_INTERVAL",
    defaultText: "60s",
    defaultValue: 60_000,
    maxMs: hourMs,
    docs: "The longest wait.",
  }),
  xdsBackoffFactor: decimalOption({
    env: "XDS_CLIENT_BACKOFF_RANDOM_FACTOR",
    range: [0, 100],
    defaultValue: 2,
    docs:
      "What each further wait is multiplied by. Up to 1, waits would never grow (the default of " +
      "envoyproxy/ratelimit is 0.5): then it is 2.",
  }),
  xdsBackoffJitter: switchOption({
    env: "XDS_CLIENT_BACKOFF_JITTER",
    defaultValue: true,
    docs: "Whether waits are spread: each is a random part of its length, at least half.",
  }),
  xdsMessageBytesMax: wholeNumberOption({
    env: "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES",
    range: [0, messageBytesLimit],
    defaultValue: 0,
    docs: "The largest message that is taken, in bytes; 0 is 4 MiB.",
  }),
} as const;
