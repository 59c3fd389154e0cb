import { connect, type Socket } from "node:net";

/** What the server sent on the connection so far. */
export interface FrameCounts {
  /** Streams answered with HEADERS. */
  readonly answered: number;
  /** Streams reset. */
  readonly reset: number;
  /** Streams that ended with HEADERS, as those of calls do. */
  readonly ended: number;
  readonly goaways: number;
}

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Source: RFC 9113, section 6. */
const frameTypes = { data: 0, headers: 1, reset: 3, settings: 4, goaway: 7, window: 8 } as const;
const endStreamFlag = 1;
const endHeadersFlag = 4;
const ackFlag = 1;
const frameHeadBytes = 9;

/**
 * A client that writes HTTP/2 frames as it likes, also such that no library would: it opens streams
 * beyond what the server allows and never finishes them.
 */
export class FrameClient {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #nextStreamId = 1;
  #counts = { answered: 0, reset: 0, ended: 0, goaways: 0 };
  #isClosed = false;
  #isWide = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("error", () => {
      // A server that cuts the connection is one of the answers under test.
    });
    socket.once("close", () => {
      this.#isClosed = true;
    });
  }

  /** Connects and greets. */
  static async open(port: number): Promise<FrameClient> {
    const socket = connect({ host: "127.0.0.1", port, noDelay: true });
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    const client = new FrameClient(socket);
    socket.write(Buffer.concat([preface, frame({ type: frameTypes.settings })]));
    return client;
  }

  get counts(): FrameCounts {
    return { ...this.#counts };
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Opens streams: each gets the head of a gRPC call, and nothing after it. */
  openStreams(path: string, count: number): void {
    const head = headerBlock(path);
    const frames: Buffer[] = [];
    for (let i = 0; i < count; i += 1) {
      const { headers: type } = frameTypes;
      const streamId = this.#nextStreamId;
      this.#nextStreamId += 2;
      frames.push(frame({ type, flags: endHeadersFlag, streamId, payload: head }));
    }
    this.#socket.write(Buffer.concat(frames));
  }

  /** Sends whole calls, one for each message, whose answers may be of any size. */
  sendCalls(path: string, messages: readonly Uint8Array[]): void {
    const frames: Buffer[] = this.#widenWindows();
    const head = headerBlock(path);
    for (const message of messages) {
      const streamId = this.#nextStreamId;
      this.#nextStreamId += 2;
      const { headers, data } = frameTypes;
      frames.push(frame({ type: headers, flags: endHeadersFlag, streamId, payload: head }));
      const payload = Buffer.concat([Buffer.alloc(5), message]);
      payload.writeUInt32BE(message.length, 1);
      frames.push(frame({ type: data, flags: endStreamFlag, streamId, payload }));
    }
    this.#socket.write(Buffer.concat(frames));
  }

  /** What lets the server send all that it has; a second time would be more than is allowed. */
  #widenWindows(): Buffer[] {
    if (this.#isWide) return [];
    this.#isWide = true;
    const maximum = Buffer.from([0x7f, 0xff, 0xff, 0xff]);
    // The window of streams to come is a setting, that of the connection has a frame.
    const setting = Buffer.concat([Buffer.from([0, 4]), maximum]);
    const increment = Buffer.from([0x7f, 0xff, 0, 0]);
    return [
      frame({ type: frameTypes.settings, payload: setting }),
      frame({ type: frameTypes.window, payload: increment }),
    ];
  }

  /** Reads nothing any more, until `resume`. */
  pause(): void {
    this.#socket.pause();
  }

  /** Reads again, also what has come meanwhile. */
  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    while (this.#received.length >= frameHeadBytes) {
      const end = frameHeadBytes + this.#received.readUIntBE(0, 3);
      if (this.#received.length < end) return;
      const type = this.#received.readUInt8(3);
      const flags = this.#received.readUInt8(4);
      this.#received = this.#received.subarray(end);
      this.#count(type, flags);
    }
  }

  #count(type: number, flags: number): void {
    if (type === frameTypes.headers) this.#counts.answered += 1;
    if (type === frameTypes.headers && (flags & endStreamFlag) !== 0) this.#counts.ended += 1;
    if (type === frameTypes.reset) this.#counts.reset += 1;
    if (type === frameTypes.goaway) this.#counts.goaways += 1;
    if (type === frameTypes.settings && (flags & ackFlag) === 0) {
      this.#socket.write(frame({ type: frameTypes.settings, flags: ackFlag }));
    }
  }
}

interface Frame {
  readonly type: number;
  readonly flags?: number;
  readonly streamId?: number;
  readonly payload?: Buffer;
}

function frame({ type, flags = 0, streamId = 0, payload = Buffer.alloc(0) }: Frame): Buffer {
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** Each field as a literal that is never indexed. Source: RFC 7541, section 6.2.3. */
function headerBlock(path: string): Buffer {
  const fields = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "headgate"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
  ] as const;
  const text = (value: string): Buffer =>
    Buffer.concat([Buffer.of(value.length), Buffer.from(value)]);
  return Buffer.concat(
    fields.map(([name, value]) => Buffer.concat([Buffer.of(0x10), text(name), text(value)])),
  );
}
