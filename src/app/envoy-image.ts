import { existsSync, readFileSync } from "node:fs";

/** Envoy's API as one descriptor image. */
const imageName = "envoy-api-1.40.0.binpb";

/** A build carries a copy beside its programs; a checkout has the one that the build takes. */
const places = ["../proto/", "../../proto/"];

/** The bytes of Envoy's API, a `google.protobuf.FileDescriptorSet`. */
export function readEnvoyImage(): Uint8Array {
  const urls = places.map((place) => new URL(`${place}${imageName}`, import.meta.url));
  const found = urls.find((url) => existsSync(url));
  if (found === undefined) throw new Error(`${imageName} is missing from this installation`);
  return readFileSync(found);
}
