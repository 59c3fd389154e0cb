import type {
  HeaderFields,
  SentField,
  ServerStream,
  StreamReader,
} from "../../src/wire/base/http2.js";

/** What was sent on a stream, in order. */
export type SentFrame =
  | { readonly kind: "headers"; readonly fields: Readonly<Record<string, string>> }
  | { readonly kind: "data"; readonly bytes: string }
  | { readonly kind: "reset"; readonly errorCode: number };

/** A stream without a connection: it writes down what is sent. */
export class RecordedStream implements ServerStream {
  readonly id = 1;
  queuedBytes = 0;
  readonly sent: SentFrame[] = [];
  /** Whether our side has ended. */
  isEnded = false;
  consumedBytes = 0;
  releaseCount = 0;
  /** What `sendData` answers. */
  isFull = false;

  sendHeaders(fields: readonly SentField[], isEnd: boolean): void {
    if (this.isEnded) return;
    this.sent.push({ kind: "headers", fields: Object.fromEntries(fields) });
    this.isEnded = isEnd;
  }

  sendData(bytes: Uint8Array, isEnd: boolean): boolean {
    if (this.isEnded) return true;
    this.sent.push({ kind: "data", bytes: Buffer.from(bytes).toString("latin1") });
    this.isEnded = isEnd;
    return !this.isFull;
  }

  sendDataWithHead(head: Uint8Array, bytes: Uint8Array, isEnd: boolean): boolean {
    return this.sendData(Buffer.concat([head, bytes]), isEnd);
  }

  consumed(byteCount: number): void {
    this.consumedBytes += byteCount;
  }

  reset(errorCode: number): void {
    if (!this.isEnded) this.sent.push({ kind: "reset", errorCode });
    this.isEnded = true;
  }

  release(): void {
    this.releaseCount += 1;
  }

  /** The peer resets the stream. */
  resetByPeer(reader: StreamReader): void {
    this.isEnded = true;
    reader.onReset();
  }

  /** The status that the call ended with; undefined while it has none. */
  get grpcStatus(): number | undefined {
    const last = this.sent.at(-1);
    const text = last?.kind === "headers" ? last.fields["grpc-status"] : undefined;
    return text === undefined ? undefined : Number(text);
  }

  /** The messages that were sent, without their heads. */
  get messages(): readonly string[] {
    return this.sent.flatMap((frame) => (frame.kind === "data" ? [frame.bytes.slice(5)] : []));
  }
}

/** Header fields as a connection would have decoded them. */
export function headerFields(pairs: readonly SentField[]): HeaderFields {
  const at = (index: number): SentField => {
    const pair = pairs[index];
    if (pair === undefined) throw new Error(`there is no field ${index}`);
    return pair;
  };
  return {
    count: pairs.length,
    name: (index) => at(index)[0],
    value: (index) => at(index)[1],
    get: (name) => pairs.find(([own]) => own === name)?.[1],
  };
}

/** The fields of a gRPC request, and more or others. */
export function requestFields(
  path: string,
  others: Readonly<Record<string, string>> = {},
): HeaderFields {
  const fields = {
    ":method": "POST",
    ":scheme": "http",
    ":path": path,
    ":authority": "test",
    "content-type": "application/grpc",
    te: "trailers",
    ...others,
  };
  return headerFields(Object.entries(fields));
}

/** A message with its head. */
export function framed(text: string | Uint8Array, flag = 0): Buffer {
  const bytes = Buffer.from(text);
  const head = Buffer.alloc(5);
  head.writeUInt8(flag, 0);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}
