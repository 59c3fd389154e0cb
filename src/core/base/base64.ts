const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Accepts each length that bytes can have. One remaining character is too short for a byte. */
const wellFormed = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

/**
 * Encodes bytes as Base64 without padding, as gRPC requires for binary metadata that is sent.
 *
 * Source: RFC 4648, section 4; gRPC over HTTP2, "Binary-Header".
 */
export function encodeBase64(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let bitCount = 0;
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xffff;
    bitCount += 8;
    while (bitCount >= 6) {
      bitCount -= 6;
      text += alphabet.charAt((bits >> bitCount) & 63);
    }
  }
  return bitCount === 0 ? text : text + alphabet.charAt((bits << (6 - bitCount)) & 63);
}

/** Decodes Base64, padded or not. Undefined if invalid. Source: RFC 4648, section 4. */
export function decodeBase64(text: string): Uint8Array | undefined {
  if (!wellFormed.test(text)) return undefined;
  const paddingAt = text.indexOf("=");
  const length = paddingAt === -1 ? text.length : paddingAt;
  const bytes = new Uint8Array(Math.floor((length * 6) / 8));
  let bits = 0;
  let bitCount = 0;
  let place = 0;
  for (let i = 0; i < length; i += 1) {
    bits = ((bits << 6) | alphabet.indexOf(text.charAt(i))) & 0xffff;
    bitCount += 6;
    if (bitCount < 8) continue;
    bitCount -= 8;
    bytes[place] = (bits >> bitCount) & 0xff;
    place += 1;
  }
  return bytes;
}
