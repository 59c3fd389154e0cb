/** A field with a length, of any bytes: also of those that no encoder takes for text. */
export function rawField(tag: number, bytes: Buffer): Buffer {
  const length: number[] = [];
  let left = bytes.length;
  for (; left > 127; left >>>= 7) length.push((left & 127) | 128);
  return Buffer.concat([Buffer.of(tag, ...length, left), bytes]);
}

/** A RateLimitRequest of one descriptor with one entry, whose value may be any bytes. */
export function rawRequest(domain: string, key: string, value: Buffer): Buffer {
  const entry = Buffer.concat([rawField(0x0a, Buffer.from(key)), rawField(0x12, value)]);
  const descriptor = rawField(0x0a, entry);
  return Buffer.concat([rawField(0x0a, Buffer.from(domain)), rawField(0x12, descriptor)]);
}
