import { connect, type Socket } from "node:net";

/** A frame as it came; its payload holds until `onFrame` returns. */
export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** Who reads what a server says on its streams, and learns that it says nothing any more. */
export interface FrameListener {
  onFrame(frame: ReceivedFrame): void;
  onClose(): void;
}

/** Types of frames that a load meets. Source: RFC 9113, section 6. */
export const frameType = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  ping: 6,
  windowUpdate: 8,
} as const;

/** Flags of those. */
export const frameFlag = { ack: 1, endStream: 1, endHeaders: 4 } as const;

/**
 * The client's side of one plaintext HTTP/2 connection, doing no more than a bench needs, so that
 * the load costs little next to the server under test. It trusts its server. What is sent in one
 * turn leaves in one write.
 *
 * Source: RFC 9113, section 4.1.
 */
export class FrameConnection {
  readonly #socket: Socket;
  #listener: FrameListener = absentListener;
  #pending: Buffer[] = [];
  #received: Buffer = Buffer.alloc(0);
  #nextStreamId = 1;
  #isFlushing = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#read(chunk));
    socket.on("close", () => this.#listener.onClose());
    socket.on("error", () => this.#listener.onClose());
    this.send(Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    this.send(encodeFrame({ ...ofConnection, type: frameType.settings, payload: noBytes }));
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(windowIncrement);
    this.send(encodeFrame({ ...ofConnection, type: frameType.windowUpdate, payload }));
  }

  /** Connects to a server on loopback; rejects when nobody listens. */
  static connect(port: number): Promise<FrameConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port });
      socket.once("error", reject);
      socket.once("connect", () => resolve(new FrameConnection(socket)));
    });
  }

  /** Says who reads, before the first stream is opened. */
  listen(listener: FrameListener): void {
    this.#listener = listener;
  }

  /** The number of a new stream. */
  takeStreamId(): number {
    const id = this.#nextStreamId;
    this.#nextStreamId += 2;
    return id;
  }

  /** Sends whole frames, with all others of this turn. */
  send(frames: Buffer): void {
    this.#pending.push(frames);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      this.#socket.write(Buffer.concat(this.#pending));
      this.#pending = [];
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    let bytes = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    while (bytes.length >= frameHeadBytes) {
      const length = bytes.readUIntBE(0, 3);
      if (bytes.length < frameHeadBytes + length) break;
      const payload = bytes.subarray(frameHeadBytes, frameHeadBytes + length);
      this.#handle({
        type: bytes[3] ?? 0,
        flags: bytes[4] ?? 0,
        streamId: bytes.readUInt32BE(5) & 0x7fffffff,
        payload,
      });
      bytes = bytes.subarray(frameHeadBytes + length);
    }
    this.#received = bytes;
  }

  #handle(frame: ReceivedFrame): void {
    const { type, flags, streamId, payload } = frame;
    if (streamId !== 0) {
      this.#listener.onFrame(frame);
      return;
    }
    const mustAnswer = type === frameType.settings || type === frameType.ping;
    if (!mustAnswer || (flags & frameFlag.ack) !== 0) return;
    const answer = type === frameType.ping ? Buffer.from(payload) : noBytes;
    this.send(encodeFrame({ type, flags: frameFlag.ack, streamId: 0, payload: answer }));
  }
}

/** A whole frame. */
export function encodeFrame({ type, flags, streamId, payload }: ReceivedFrame): Buffer {
  const bytes = Buffer.allocUnsafe(frameHeadBytes + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(streamId, 5);
  payload.copy(bytes, frameHeadBytes);
  return bytes;
}

/** A message that is not compressed, with the head that gRPC gives it. */
export function encodeGrpcMessage(message: Buffer): Buffer {
  const head = Buffer.alloc(grpcHeadBytes);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** A header field to send: lower-case name, value in Latin-1. */
export type HeaderField = readonly [name: string, value: string];

/** The header block of a gRPC call. */
export function encodeCallHeaders(path: string): Buffer {
  return encodeHeaderBlock([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "bench"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
  ]);
}

/**
 * A header block. Every field is a literal with its name, not indexed: the same bytes serve every
 * request.
 *
 * Source: RFC 7541, section 6.2.2.
 */
export function encodeHeaderBlock(fields: readonly HeaderField[]): Buffer {
  const parts = fields.map(([name, value]) => [Buffer.from([0]), text(name), text(value)]);
  return Buffer.concat(parts.flat());
}

/** Bytes before a message of gRPC. */
export const grpcHeadBytes = 5;

const frameHeadBytes = 9;
const noBytes = Buffer.alloc(0);
const ofConnection = { flags: 0, streamId: 0 };
/** Enough for all answers of a bench run, so that the client never has to send more. */
const windowIncrement = 0x3fff0000;
const absentListener: FrameListener = { onFrame() {}, onClose() {} };

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  if (bytes.length > 126) throw new Error("a header of the bench is too long for one length byte");
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}
