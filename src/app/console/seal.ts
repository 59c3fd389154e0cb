import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { isJsonObject, type JsonObject, type JsonValue } from "../../core/base/json.js";

/** The maximum length of a sealed text: browsers keep no longer cookies. */
export const sealedCharsMax = 4_096;

const cipher = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/** What a sealed text is for, so that it cannot be used for anything else. */
export type SealPurpose = "session" | "sign-in";

/**
 * Seals texts that a browser stores for the console and can neither read nor change: AES-256-GCM
 * with a random nonce for each text, and one key for each purpose.
 */
export class Seal {
  readonly #secret: Buffer;

  /** @param secret shared by all replicas; if undefined, a random one of this process is used */
  constructor(secret: string | undefined) {
    this.#secret = secret === undefined ? randomBytes(32) : Buffer.from(secret);
  }

  close(purpose: SealPurpose, value: JsonObject): string {
    const nonce = randomBytes(nonceBytes);
    const encrypting = createCipheriv(cipher, this.#key(purpose), nonce);
    const text = encrypting.update(JSON.stringify(value), "utf8");
    const sealed = [nonce, text, encrypting.final(), encrypting.getAuthTag()];
    return Buffer.concat(sealed).toString("base64url");
  }

  /** Undefined if the text was not sealed with this secret for this purpose. */
  open(purpose: SealPurpose, sealed: string): JsonObject | undefined {
    const bytes = Buffer.from(sealed.slice(0, sealedCharsMax), "base64url");
    if (bytes.length < nonceBytes + tagBytes) return undefined;
    const end = bytes.length - tagBytes;
    const options = { authTagLength: tagBytes };
    const nonce = bytes.subarray(0, nonceBytes);
    const decrypting = createDecipheriv(cipher, this.#key(purpose), nonce, options);
    decrypting.setAuthTag(bytes.subarray(end));
    try {
      const parts = [decrypting.update(bytes.subarray(nonceBytes, end)), decrypting.final()];
      const value: JsonValue = JSON.parse(Buffer.concat(parts).toString("utf8"));
      return isJsonObject(value) ? value : undefined;
    } catch {
      // Forged, or sealed with another key or by another version.
      return undefined;
    }
  }

  /** A message authentication code of a text. */
  mark(text: string): string {
    return createHmac("sha256", this.#key("mark")).update(text).digest("base64url");
  }

  #key(purpose: SealPurpose | "mark"): Buffer {
    return createHmac("sha256", this.#secret).update(`headgate console ${purpose}`).digest();
  }
}
