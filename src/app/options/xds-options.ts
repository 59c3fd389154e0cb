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

/** Possible sources of a policy. */
type ConfigType = "file" | "grpc_xds_sotw";

const hourMs = 3_600_000;

/** Upper bound of the maximum size of a message, in bytes. */
const messageBytesLimit = 268_435_456;

/** The source of the policy, and what applies until it is loaded. */
export const policyStartOptionRows = {
  configType: choiceOption<ConfigType>({
    env: "CONFIG_TYPE",
    choices: ["file", "grpc_xds_sotw"],
    defaultValue: "file",
    docs:
      "The source of the policy: `file`, or `grpc_xds_sotw`, a control plane that " +
      "sends `ratelimit.config.ratelimit.v3.RateLimitConfig` over aggregated " +
      "discovery.",
  }),
  policySource: choiceOption<"files" | "store">({
    env: "HEADGATE_POLICY_SOURCE",
    choices: ["files", "store"],
    defaultValue: "files",
    docs:
      "Which policy is active. `files`: that of the files (or the control plane). " +
      "`store`: the one that was last applied through the admin API, on all " +
      "replicas of the store. With `store`, a new fleet starts with the files.",
  }),
  mergesDomains: switchOption({
    env: "MERGE_DOMAIN_CONFIG",
    defaultValue: false,
    docs: "Whether several files, or resources of a control plane, may add to the same domain.",
  }),
  forceStart: switchOption({
    env: "FORCE_START_WITHOUT_INITIAL_CONFIG",
    defaultValue: false,
    docs:
      "Whether to serve before there is a policy; calls fail until then. If false, " +
      "missing or invalid files end the start, and Headgate waits for a control " +
      "plane.",
  }),
  needsDomainForHealth: switchOption({
    env: "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED",
    defaultValue: false,
    docs: "Whether health is NOT_SERVING while the active policy has no domain.",
  }),
} as const;

/** Access to the control plane. */
export const xdsOptionRows = {
  xdsServer: textOption({
    env: "CONFIG_GRPC_XDS_SERVER_URL",
    valueName: "HOST:PORT",
    defaultValue: "localhost:18000",
    docs: "The address of the control plane.",
  }),
  xdsNodeId: textOption({
    env: "CONFIG_GRPC_XDS_NODE_ID",
    valueName: "TEXT",
    defaultValue: "default",
    docs: "The node id that Headgate sends; control planes select the policy by it.",
  }),
  xdsNodeMetadata: textOption({
    env: "CONFIG_GRPC_XDS_NODE_METADATA",
    valueName: "NAME=VALUE,...",
    defaultValue: "",
    docs: "The node metadata that Headgate sends.",
  }),
  xdsHeaders: secretOption({
    env: "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
    valueName: "NAME:VALUE,...",
    docs: "Additional headers of the call: `name:value,name:value`, for example an access token.",
  }),
  xdsUseTls: switchOption({
    env: "CONFIG_GRPC_XDS_SERVER_USE_TLS",
    defaultValue: false,
    docs: "Uses TLS to the control plane. Its files are read for each new connection.",
  }),
  xdsServerCaCert: optionalTextOption({
    env: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
    valueName: "PATH",
    docs: "CA certificates for the control plane, as PEM, instead of Node's own.",
  }),
  xdsServerSan: optionalTextOption({
    env: "CONFIG_GRPC_XDS_SERVER_TLS_SAN",
    valueName: "NAME",
    docs:
      "The name that the control plane's certificate must contain. Default: the host " +
      "of its address.",
  }),
  xdsClientCert: optionalTextOption({
    env: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
    valueName: "PATH",
    docs: "Headgate's client certificate for the control plane, as PEM; needs its key.",
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
    docs: "The first wait after a failed connection attempt.",
  }),
  xdsBackoffInitialMs: durationOption({
    env: "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL",
    defaultText: "10s",
    defaultValue: 10_000,
    maxMs: hourMs,
    docs: "The first wait after a lost connection.",
  }),
  xdsBackoffMsMax: durationOption({
    env: "XDS_CLIENT_BACKOFF_MAX_INTERVAL",
    defaultText: "60s",
    defaultValue: 60_000,
    maxMs: hourMs,
    docs: "The longest wait between attempts.",
  }),
  xdsBackoffFactor: decimalOption({
    env: "XDS_CLIENT_BACKOFF_RANDOM_FACTOR",
    range: [0, 100],
    defaultValue: 2,
    docs:
      "The factor by which each wait grows. A factor of at most 1 is replaced by " +
      "2, so that waits grow (the default of envoyproxy/ratelimit is 0.5).",
  }),
  xdsBackoffJitter: switchOption({
    env: "XDS_CLIENT_BACKOFF_JITTER",
    defaultValue: true,
    docs: "Whether waits have jitter: each is a random part of its length, at least half.",
  }),
  xdsMessageBytesMax: wholeNumberOption({
    env: "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES",
    range: [0, messageBytesLimit],
    defaultValue: 0,
    docs: "The largest message that is accepted, in bytes; 0: 4 MiB.",
  }),
} as const;
