import { createHash, hash as hashOnce } from "node:crypto";

/**
 * SHA-256 of a text, in hexadecimal: what stands in a key for a value that cannot stand there.
 * Halves of characters all have the same UTF-8, so a text with some is digested as UTF-16, behind a
 * byte that begins no UTF-8: no two texts have the same bytes.
 */
export function sha256(text: string): string {
  if (text.isWellFormed()) return hashOnce("sha256", text);
  return createHash("sha256").update(noUtf8).update(text, "utf16le").digest("hex");
}

const noUtf8 = Buffer.of(0xff);
