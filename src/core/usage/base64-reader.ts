/** Maximum decoded bytes that are passed on at a time. */
const scratchBytes = 768;

/**
 * Decodes base64 that arrives in pieces, as it is in a JSON text: a backslash before `/`, padding
 * and everything else that is not base64 are skipped.
 *
 * Source: RFC 4648, section 4.
 */
export class Base64Reader {
  readonly #decoded: (bytes: Uint8Array, from: number, to: number) => void;
  #bits = 0;
  #bitCount = 0;

  /** @param decoded receives the bytes, which are valid only during the call */
  constructor(decoded: (bytes: Uint8Array, from: number, to: number) => void) {
    this.#decoded = decoded;
  }

  push(bytes: Uint8Array, from: number, to: number): void {
    // As a field of the reader, it would be a fifth of what a response may hold.
    const scratch = new Uint8Array(scratchBytes);
    let length = 0;
    for (let i = from; i < to; i += 1) {
      const value = sextets[bytes[i] ?? 0] ?? none;
      if (value === none) continue;
      this.#bits = ((this.#bits << 6) | value) & 0xfff;
      this.#bitCount += 6;
      if (this.#bitCount < 8) continue;
      this.#bitCount -= 8;
      scratch[length] = this.#bits >> this.#bitCount;
      length += 1;
      if (length === scratchBytes) {
        this.#decoded(scratch, 0, length);
        length = 0;
      }
    }
    if (length > 0) this.#decoded(scratch, 0, length);
  }

  /** Begins the next text. */
  reset(): void {
    this.#bitCount = 0;
  }
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const none = 255;

/** Values of base64 characters, by byte. */
const sextets = new Uint8Array(256).map((_, byte) => {
  const at = alphabet.indexOf(String.fromCharCode(byte));
  return at === -1 ? none : at;
});
