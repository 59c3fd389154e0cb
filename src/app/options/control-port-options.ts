import { defaultLayerTtlMs } from "../../core/feedback/feedback-settings.js";
import { defaultIdentityPercentMax } from "../../rpc/control/control-plane.js";
import { type NodeRule, parseNodeRules } from "../../rpc/nodes/node-rules.js";
import { optionalAddressOption } from "./address-option.js";
import { wholeNumberOption } from "./option.js";
import { checkedOption } from "./tls-options.js";

/** Where Envoys listen to us and tell us what they do. */
export const controlPortOptionRows = {
  // One name for host and port, and not called a port: what ends in `_PORT` Kubernetes sets by
  // itself in every pod beside a Service that is called headgate-control.
  controlAddress: optionalAddressOption({
    env: "HEADGATE_CONTROL_ADDR",
    defaultText: ":18000",
    defaultValue: { host: "0.0.0.0", port: 18_000 },
    docs:
      "Where the control port listens, `host:port`; `:port` is all addresses, port 0 a free one. " +
      "Envoys get their shares of services' limits there, and tell what they do. TLS as on the " +
      "gRPC port. A taken one is warned of, and the service goes on. Empty: no control port; " +
      "nor is there one by default for a configuration of envoyproxy/ratelimit alone.",
  }),
  nodeRules: checkedOption<readonly NodeRule[]>({
    env: "HEADGATE_CONTROL_NODES",
    valueName: "RULES",
    docs:
      "For which Envoys a client's certificate may speak on the control port: rules " +
      "`NAME NODE [CLUSTER]` with commas or ends of lines between them, as " +
      "docs/guides/control-port.md says. Empty: for those for whom no other one speaks.",
    parse: parseNodeRules,
  }),
  identityPercentMax: wholeNumberOption({
    env: "HEADGATE_CONTROL_IDENTITY_PERCENT_MAX",
    range: [1, 100],
    defaultValue: defaultIdentityPercentMax,
    docs:
      "The most that one client of the control port may have of the streams, Envoys and buckets " +
      "that there may be, in percent: by its certificate, or without one by its address. 100 " +
      "where one certificate or address stands for all Envoys of more than half of that.",
  }),
  layerTtlMs: wholeNumberOption({
    env: "HEADGATE_LAYER_TTL_MS",
    range: [3_000, 3_600_000],
    defaultValue: defaultLayerTtlMs,
    docs:
      "How long Envoys keep the limits that the control port sent when no Headgate renews them, " +
      "and how long the last ones are handed out while Redis is away. After that Envoys use " +
      "their configured limits. Set the same value on all replicas.",
  }),
} as const;
