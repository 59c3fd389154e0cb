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
    section: "Policy",
    env: "CONFIG_TYPE",
    flag: "config-type",
    choices: ["file", "grpc_xds_sotw"],
    defaultValue: "file",
    docs:
      "Where the policy comes from: `file`, or `grpc_xds_sotw`, a control plane that sends " +
      "`ratelimit.config.ratelimit.v3.RateLimitConfig` over aggregated discovery.",
  }),
  policySource: choiceOption<"files" | "store">({
    section: "Policy",
    env: "HEADGATE_POLICY_SOURCE",
    flag: "policy-source",
    choices: ["files", "store"],
    defaultValue: "files",
    docs:
      "Which policy holds: `files`, that of the files (or the control plane), or `store`, the " +
      "one that was applied last through the admin API, on all replicas of the store. With " +
      "`store` the files are what a new fleet begins with.",
  }),
  mergesDomains: switchOption({
    section: "Policy",
    env: "MERGE_DOMAIN_CONFIG",
    flag: "merge-domain-config",
    defaultValue: false,
    docs: "Whether several files, or resources of a control plane, may add to one domain.",
  }),
  forceStart: switchOption({
    section: "Policy",
    env: "FORCE_START_WITHOUT_INITIAL_CONFIG",
    flag: "force-start-without-initial-config",
    defaultValue: false,
    docs:
      "Whether to serve before there is a policy; calls fail until then. Without it, missing or " +
      "wrong files end the start, and a control plane is waited for.",
  }),
  needsDomainForHealth: switchOption({
    section: "Policy",
    env: "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED",
    flag: "healthy-with-at-least-one-config-loaded",
    defaultValue: false,
    docs: "Whether health says NOT_SERVING while the active policy holds no domain.",
  }),
} as const;

/** How the control plane is reached. */
export const xdsOptionRows = {
  xdsServer: textOption({
    section: "Control plane",
    env: "CONFIG_GRPC_XDS_SERVER_URL",
    flag: "xds-server-url",
    valueName: "HOST:PORT",
    defaultValue: "localhost:18000",
    docs: "Where the control plane listens.",
  }),
  xdsNodeId: textOption({
    section: "Control plane",
    env: "CONFIG_GRPC_XDS_NODE_ID",
    flag: "xds-node-id",
    valueName: "TEXT",
    defaultValue: "default",
    docs: "Who we say we are; control planes choose the policy by it.",
  }),
  xdsNodeMetadata: textOption({
    section: "Control plane",
    env: "CONFIG_GRPC_XDS_NODE_METADATA",
    flag: "xds-node-metadata",
    valueName: "NAME=VALUE,...",
    defaultValue: "",
    docs: "What we say about us besides.",
  }),
  xdsHeaders: secretOption({
    section: "Control plane",
    env: "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
    valueName: "NAME:VALUE,...",
    docs: "Headers of the call: `name:value,name:value`, for example an access token.",
  }),
  xdsUseTls: switchOption({
    section: "Control plane",
    env: "CONFIG_GRPC_XDS_SERVER_USE_TLS",
    flag: "xds-server-use-tls",
    defaultValue: false,
    docs: "Reaches the control plane over TLS. Its files are read for each new connection.",
  }),
  xdsServerCaCert: optionalTextOption({
    section: "Control plane",
    env: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
    flag: "xds-server-tls-cacert",
    valueName: "PATH",
    docs: "Authorities that vouch for the control plane, as PEM, in place of those Node knows.",
  }),
  xdsServerSan: optionalTextOption({
    section: "Control plane",
    env: "CONFIG_GRPC_XDS_SERVER_TLS_SAN",
    flag: "xds-server-tls-san",
    valueName: "NAME",
    docs: "The name that its certificate must hold, in place of the host it is reached at.",
  }),
  xdsClientCert: optionalTextOption({
    section: "Control plane",
    env: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
    flag: "xds-client-tls-cert",
    valueName: "PATH",
    docs: "The certificate that we show, as PEM; with its key.",
  }),
  xdsClientKey: optionalTextOption({
    section: "Control plane",
    env: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
    flag: "xds-client-tls-key",
    valueName: "PATH",
    docs: "Its private key, as PEM without a passphrase.",
  }),
  xdsConnectRetryMs: durationOption({
    section: "Control plane",
    env: "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
    flag: "xds-server-connect-retry-interval",
    defaultText: "3s",
    defaultValue: 3_000,
    maxMs: hourMs,
    docs: "The first wait when no connection can be made.",
  }),
  xdsBackoffInitialMs: durationOption({
    section: "Control plane",
    env: "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL",
    flag: "xds-client-backoff-initial-interval",
    defaultText: "10s",
    defaultValue: 10_000,
    maxMs: hourMs,
    docs: "The first wait after a connection was lost.",
  }),
  xdsBackoffMsMax: durationOption({
    section: "Control plane",
    env: "XDS_CLIENT_BACKOFF_MAX_INTERVAL",
    flag: "xds-client-backoff-max-interval",
    defaultText: "60s",
    defaultValue: 60_000,
    maxMs: hourMs,
    docs: "The longest wait.",
  }),
  xdsBackoffFactor: decimalOption({
    section: "Control plane",
    env: "XDS_CLIENT_BACKOFF_RANDOM_FACTOR",
    flag: "xds-client-backoff-random-factor",
    min: 0,
    max: 100,
    defaultValue: 2,
    docs:
      "What each further wait is multiplied by. Up to 1, waits would never grow (the default of " +
      "envoyproxy/ratelimit is 0.5): then it is 2.",
  }),
  xdsBackoffJitter: switchOption({
    section: "Control plane",
    env: "XDS_CLIENT_BACKOFF_JITTER",
    flag: "xds-client-backoff-jitter",
    defaultValue: true,
    docs: "Whether waits are spread: each is a random part of its length, at least half.",
  }),
  xdsMessageBytesMax: wholeNumberOption({
    section: "Control plane",
    env: "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES",
    flag: "xds-client-max-msg-size-in-bytes",
    min: 0,
    max: messageBytesLimit,
    defaultValue: 0,
    docs: "The largest message that is taken, in bytes; 0 is 4 MiB.",
  }),
} as const;
