import { readFileSync } from "node:fs";
import { ownFile } from "../base/own-file.js";

/** Envoy's API as one descriptor image. */
const imageName = "envoy-api-1.40.0.binpb";

/** Reads the bytes of Envoy's API, a `google.protobuf.FileDescriptorSet`. */
export function readEnvoyImage(): Uint8Array {
  const file = ownFile(`proto/${imageName}`);
  if (file === undefined) throw new Error(`${imageName} is missing from this installation`);
  return readFileSync(file);
}
