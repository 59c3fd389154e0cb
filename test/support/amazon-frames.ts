/** A message of `application/vnd.amazon.eventstream`: text headers, and a payload. */
export interface AmazonMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: string;
}

/** Messages as Amazon's services stream them. Source: Amazon's event stream encoding. */
export function encodeAmazonFrames(messages: readonly AmazonMessage[]): Buffer {
  return Buffer.concat(messages.map(encodeMessage));
}

/** A message of ConverseStream, or of another stream of events. */
export function amazonEvent(type: string, payload: object): AmazonMessage {
  const headers = {
    ":event-type": type,
    ":content-type": "application/json",
    ":message-type": "event",
  };
  return { headers, payload: JSON.stringify(payload) };
}

/** A message of InvokeModelWithResponseStream, with a document of the model's maker in it. */
export function amazonChunk(document: object): AmazonMessage {
  const bytes = Buffer.from(JSON.stringify(document)).toString("base64");
  return amazonEvent("chunk", { bytes, p: "abcdefghij" });
}

/** The beginning of a message: its length, that of its headers, and a CRC of both. */
export function encodeAmazonPrelude(messageBytes: number, headerBytes: number): Buffer {
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32BE(messageBytes, 0);
  lengths.writeUInt32BE(headerBytes, 4);
  return Buffer.concat([lengths, crc(lengths)]);
}

function encodeMessage({ headers, payload }: AmazonMessage): Buffer {
  const head = Buffer.concat(Object.entries(headers).map(encodeHeader));
  const body = Buffer.from(payload);
  const prelude = encodeAmazonPrelude(12 + head.length + body.length + 4, head.length);
  const checked = Buffer.concat([prelude, head, body]);
  return Buffer.concat([checked, crc(checked)]);
}

function encodeHeader([name, value]: [string, string]): Buffer {
  const text = Buffer.from(value);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(text.length);
  // 7: a text.
  return Buffer.concat([Buffer.of(name.length), Buffer.from(name), Buffer.of(7), length, text]);
}

/** CRC-32 as a polynomial division of one bit at a time. */
function crc(bytes: Uint8Array): Buffer {
  let rest = 0xffffffffn;
  for (const byte of bytes) {
    rest ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit += 1) rest = (rest >> 1n) ^ ((rest & 1n) * 0xedb88320n);
  }
  const result = Buffer.alloc(4);
  result.writeUInt32BE(Number(rest ^ 0xffffffffn));
  return result;
}
