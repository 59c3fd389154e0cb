import { readEnvoyImage } from "../../src/app/envoy-image.js";
import { EnvoyApi } from "../../src/generate/check/envoy-api.js";

/** Envoy's API as the product ships it. */
export function readEnvoyApi(): EnvoyApi {
  return new EnvoyApi(readEnvoyImage());
}
