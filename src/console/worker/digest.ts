import { type Digest, KeyedHash } from "../../core/collections/keyed-hash.js";

/** Creates a function that returns keyed digests of texts, in hexadecimal. */
export function createDigest(secret: Readonly<Digest>): (text: string) => string {
  const hash = new KeyedHash(secret);
  return (text) => {
    const { a, b, c, d } = hash.ofText(text);
    return [a, b, c, d].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  };
}
