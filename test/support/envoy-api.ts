import { readEnvoyImage } from "../../src/app/config/envoy-image.js";
import { EnvoyApi } from "../../src/generate/check/envoy-api.js";

let shared: EnvoyApi | undefined;

/** Envoy's API as the product ships it; read once a process, which takes a second of a core. */
export function readEnvoyApi(): EnvoyApi {
  shared ??= new EnvoyApi(readEnvoyImage());
  return shared;
}
