import { createHash } from "node:crypto";

/** SHA-256 of a text, in hexadecimal: what stands in a key for a value that is too long for it. */
export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
