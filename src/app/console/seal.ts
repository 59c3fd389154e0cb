import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { isJsonObject, type JsonObject, type JsonValue } from "../../core/base/json.js";

/** The longest sealed text that is looked at: browsers keep no longer cookie. */
export const sealedCharsMax = 4_096;

const cipher = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/** What is sealed, so that one cannot be handed back as the other. */
export type SealPurpose = "session" | "sign-in";

/**
 * Texts that a browser keeps for us and can neither read nor change: AES-256-GCM with a nonce drawn
 * for each, by one key for each purpose.
 */
export class Seal {
  readonly #secret: Buffer;

  /** @param secret of all replicas that take each other's; undefined: one of this process */
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

  /** Undefined for what was not sealed here for this purpose. */
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
      // Forged, of another key, or of another version.
      return undefined;
    }
  }

  /** What only who holds the key can say of a text. */
  mark(text: string): string {
    return createHmac("sha256", this.#key("mark")).update(text).digest("base64url");
  }

  #key(purpose: SealPurpose | "mark"): Buffer {
    return createHmac("sha256", this.#secret).update(`headgate console ${purpose}`).digest();
  }
}
