import { connect, type Socket } from "node:net";

/**
 * A gRPC client that does no more than a bench needs: one path, prepared bodies, frames written and
 * read by hand, so that the load costs little next to the server under test. It trusts its server.
 *
 * Source: RFC 9113 section 4.1 (frames), section 6 (types); RFC 7541 section 6.2.2 (literal
 * fields).
 */
export class FrameClient {
  readonly #socket: Socket;
  readonly #headerBlock: Buffer;
  readonly #calls = new Map<number, Call>();
  #pending: Buffer[] = [];
  #received: Buffer = Buffer.alloc(0);
  #nextStreamId = 1;
  #isFlushing = false;

  private constructor(socket: Socket, path: string) {
    this.#socket = socket;
    this.#headerBlock = encodeHeaders(path);
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#read(chunk));
    socket.on("close", () => this.#failAll());
    socket.on("error", () => this.#failAll());
    this.#write(Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    this.#write(
      frame({ type: frameType.settings, flags: 0, streamId: 0, payload: Buffer.alloc(0) }),
    );
    this.#write(
      frame({
        type: frameType.windowUpdate,
        flags: 0,
        streamId: 0,
        payload: uint32(windowIncrement),
      }),
    );
  }

  /** Connects to a plaintext HTTP/2 server on loopback; rejects when nobody listens. */
  static connect(port: number, path: string): Promise<FrameClient> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port });
      socket.once("error", reject);
      socket.once("connect", () => resolve(new FrameClient(socket, path)));
    });
  }

  /** Sends one message; `done` gets the answer's bytes, or undefined when the call failed. */
  call(message: Buffer, done: (answer: Buffer | undefined) => void): void {
    const streamId = this.#nextStreamId;
    this.#nextStreamId += 2;
    this.#calls.set(streamId, { done, answer: undefined });
    this.#write(
      frame({
        type: frameType.headers,
        flags: flag.endHeaders,
        streamId: streamId,
        payload: this.#headerBlock,
      }),
    );
    this.#write(
      frame({
        type: frameType.data,
        flags: flag.endStream,
        streamId: streamId,
        payload: grpcMessage(message),
      }),
    );
  }

  close(): void {
    this.#socket.destroy();
  }

  #write(bytes: Buffer): void {
    this.#pending.push(bytes);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      this.#socket.write(Buffer.concat(this.#pending));
      this.#pending = [];
    });
  }

  #read(chunk: Buffer): void {
    let bytes = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    while (bytes.length >= frameHeaderBytes) {
      const length = bytes.readUIntBE(0, 3);
      if (bytes.length < frameHeaderBytes + length) break;
      const payload = bytes.subarray(frameHeaderBytes, frameHeaderBytes + length);
      this.#handle({
        type: bytes[3] ?? 0,
        flags: bytes[4] ?? 0,
        streamId: bytes.readUInt32BE(5) & 0x7fffffff,
        payload,
      });
      bytes = bytes.subarray(frameHeaderBytes + length);
    }
    this.#received = bytes;
  }

  #handle({ type, flags, streamId, payload }: Frame): void {
    if (type === frameType.settings && (flags & flag.ack) === 0) {
      this.#write(
        frame({ type: frameType.settings, flags: flag.ack, streamId: 0, payload: Buffer.alloc(0) }),
      );
    } else if (type === frameType.ping && (flags & flag.ack) === 0) {
      this.#write(frame({ type: frameType.ping, flags: flag.ack, streamId: 0, payload: payload }));
    }
    const call = this.#calls.get(streamId);
    if (call === undefined) return;
    if (type === frameType.data) call.answer = Buffer.from(payload.subarray(grpcPrefixBytes));
    const isReset = type === frameType.rstStream;
    const isEnd = type === frameType.headers && (flags & flag.endStream) !== 0;
    if (!isEnd && !isReset) return;
    this.#calls.delete(streamId);
    call.done(isReset ? undefined : call.answer);
  }

  #failAll(): void {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.done(undefined);
  }
}

interface Call {
  readonly done: (answer: Buffer | undefined) => void;
  answer: Buffer | undefined;
}

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

const frameHeaderBytes = 9;
const grpcPrefixBytes = 5;
/** Enough for all answers of a bench run, so that the client never has to send more. */
const windowIncrement = 0x3fff0000;
const frameType = { data: 0, headers: 1, rstStream: 3, settings: 4, ping: 6, windowUpdate: 8 };
const flag = { ack: 1, endStream: 1, endHeaders: 4 };

function frame({ type, flags, streamId, payload }: Frame): Buffer {
  const bytes = Buffer.allocUnsafe(frameHeaderBytes + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(streamId, 5);
  payload.copy(bytes, frameHeaderBytes);
  return bytes;
}

function grpcMessage(message: Buffer): Buffer {
  const prefix = Buffer.alloc(grpcPrefixBytes);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Every field as a literal with its name, never indexed: the same bytes serve every call. */
function encodeHeaders(path: string): Buffer {
  const fields = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "bench"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
  ] as const;
  const parts = fields.map(([name, value]) => [Buffer.from([0]), text(name), text(value)]);
  return Buffer.concat(parts.flat());
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  if (bytes.length > 126) throw new Error("a header of the bench is too long for one length byte");
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}
