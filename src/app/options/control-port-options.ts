import { defaultLayerTtlMs } from "../../core/feedback/feedback-settings.js";
import { defaultIdentityPercentMax } from "../../rpc/control/control-plane.js";
import { type NodeRule, parseNodeRules } from "../../rpc/nodes/node-rules.js";
import { optionalAddressOption } from "./address-option.js";
import { wholeNumberOption } from "./option.js";
import { checkedOption } from "./tls-options.js";

/** Port on which Envoys connect and report. */
export const controlPortOptionRows = {
  // One name for host and port. It is not named a port: Kubernetes itself sets names that end in
  // `_PORT` in every pod beside a Service that is called headgate-control.
  controlAddress: optionalAddressOption({
    env: "HEADGATE_CONTROL_ADDR",
    defaultText: ":18000",
    defaultValue: { host: "0.0.0.0", port: 18_000 },
    docs:
      "The address of the control port, `host:port`. `:port` binds all addresses, " +
      "port 0 picks a free port. Envoys get their shares and report their load " +
      "there, with the TLS settings of the gRPC port. If the port is in use, " +
      "Headgate logs a warning and runs without it. Empty: no control port, which " +
      "is the default for a configuration of envoyproxy/ratelimit.",
  }),
  nodeRules: checkedOption<readonly NodeRule[]>({
    env: "HEADGATE_CONTROL_NODES",
    valueName: "RULES",
    docs:
      "The Envoys that a client certificate may act for on the control port: rules " +
      "`NAME NODE [CLUSTER]`, separated by commas or newlines (see " +
      "docs/guides/control-port.md). Empty: a client may use any id that no other " +
      "client uses.",
    parse: parseNodeRules,
  }),
  identityPercentMax: wholeNumberOption({
    env: "HEADGATE_CONTROL_IDENTITY_PERCENT_MAX",
    range: [1, 100],
    defaultValue: defaultIdentityPercentMax,
    docs:
      "The maximum share of streams, Envoys and buckets on the control port for " +
      "one client, in percent. A client is a certificate, or without one an " +
      "address. Set 100 if one certificate or address stands for most of your " +
      "Envoys.",
  }),
  layerTtlMs: wholeNumberOption({
    env: "HEADGATE_LAYER_TTL_MS",
    range: [3_000, 3_600_000],
    defaultValue: defaultLayerTtlMs,
    docs:
      "How long Envoys keep limits from the control port when Headgate does not " +
      "renew them, and how long the last limits are sent while Redis is " +
      "unreachable. After that Envoys use their configured limits. Set the same " +
      "value on all replicas.",
  }),
} as const;
