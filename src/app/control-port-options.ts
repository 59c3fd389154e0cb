import { defaultLayerTtlMs } from "../core/feedback-settings.js";
import { optionalAddressOption } from "./address-option.js";
import { wholeNumberOption } from "./option.js";

/** Where Envoys listen to us and tell us what they do. */
export const controlPortOptionRows = {
  // One name for host and port, and not called a port: what ends in `_PORT` Kubernetes sets by
  // itself in every pod beside a Service that is called headgate-control.
  controlAddress: optionalAddressOption({
    section: "Listening",
    env: "HEADGATE_CONTROL_ADDR",
    flag: "control-addr",
    defaultText: ":18000",
    defaultValue: { host: "0.0.0.0", port: 18_000 },
    docs:
      "Where the control port listens, `host:port`; `:port` is all addresses, port 0 a free one. " +
      "Envoys get their shares of services' limits there, and tell what they do. TLS as on the " +
      "gRPC port. A taken one is warned of, and the service goes on. Empty: no control port.",
  }),
  layerTtlMs: wholeNumberOption({
    section: "Listening",
    env: "HEADGATE_LAYER_TTL_MS",
    flag: "layer-ttl-ms",
    min: 3_000,
    max: 3_600_000,
    defaultValue: defaultLayerTtlMs,
    docs:
      "How long Envoys keep the limits that the control port sent when no Headgate renews them, " +
      "and how long the last ones are handed out while Redis is away. After that Envoys use " +
      "their configured limits. Set the same value on all replicas.",
  }),
} as const;
