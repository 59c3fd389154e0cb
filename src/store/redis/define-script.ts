import { createHash } from "node:crypto";
import type { StoreScript } from "../connection.js";

/** A script under the name that logs use for it. */
export function defineScript(name: string, text: string): StoreScript {
  return { name, text, sha1: createHash("sha1").update(text).digest("hex") };
}
