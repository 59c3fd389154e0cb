/** A field with a length, of any bytes: also of those that no encoder takes for text. */
export function rawField(tag: number, bytes: Buffer): Buffer {
  return Buffer.concat([rawVarint(tag), rawVarint(bytes.length), bytes]);
}

/** A number without a sign, up to 31 bits. */
export function rawVarint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left > 127; left >>>= 7) bytes.push((left & 127) | 128);
  return Buffer.of(...bytes, left);
}

/** A RateLimitRequest of one descriptor with one entry, whose value may be any bytes. */
export function rawRequest(domain: string, key: string, value: Buffer): Buffer {
  const entry = Buffer.concat([rawField(0x0a, Buffer.from(key)), rawField(0x12, value)]);
  const descriptor = rawField(0x0a, entry);
  return Buffer.concat([rawField(0x0a, Buffer.from(domain)), rawField(0x12, descriptor)]);
}
