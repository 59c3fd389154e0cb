import { choiceOption } from "./option.js";

/** The settings of a sidecar, which only one pod's Envoy calls. */
const sidecar = {
  GRPC_HOST: "127.0.0.1",
  HOST: "",
  HEADGATE_JSON: "false",
  DEBUG_HOST: "",
  HEADGATE_ADMIN_ADDR: "",
  HEADGATE_CONTROL_ADDR: "",
  HEADGATE_CONNECTIONS_PER_ADDRESS_MAX: "256",
  HEADGATE_REQUESTS_IN_FLIGHT_MAX: "2000",
  HEADGATE_MEMORY_KEYS_MAX: "100000",
  HEADGATE_CACHE_BYTES_MAX: "8388608",
  HEADGATE_DRAIN_DELAY_MS: "0",
} as const;

/** The settings of each preset, as in the environment. Explicit settings take precedence. */
export const presets: Readonly<Record<"none" | "sidecar", Readonly<Record<string, string>>>> = {
  none: {},
  sidecar,
};

/** Chooses the preset. */
export const presetOptionRows = {
  preset: choiceOption({
    env: "HEADGATE_PRESET",
    choices: ["none", "sidecar"],
    defaultValue: "none",
    docs:
      "Defaults for a kind of deployment. `sidecar` serves gRPC on loopback and opens no other " +
      `port: ${assignments(sidecar)}. Settings that you name take precedence, also to open a ` +
      "port again.",
  }),
} as const;

function assignments(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([name, value]) => `\`${name}=${value}\``)
    .join(", ");
}
