import { createHash, hash as hashOnce } from "node:crypto";

/**
 * Returns the SHA-256 of a text, in hexadecimal: it replaces a value that a key cannot contain.
 * Lone surrogates all have the same UTF-8, so a text with some is digested as UTF-16, after a byte
 * that never begins UTF-8: no two texts have the same bytes.
 */
export function sha256(text: string): string {
  if (text.isWellFormed()) return hashOnce("sha256", text);
  return createHash("sha256").update(noUtf8).update(text, "utf16le").digest("hex");
}

const noUtf8 = Buffer.of(0xff);
