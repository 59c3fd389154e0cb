import type {
  HeaderFields,
  ServerStream,
  StreamAcceptor,
  StreamReader,
} from "../../src/wire/base/http2.js";
import { HpackDecoder } from "../../src/wire/hpack/hpack-decoder.js";
import {
  type ByteStream,
  type ConnectionEnd,
  Http2Connection,
} from "../../src/wire/http2/http2-connection.js";
import { FakeClock } from "./fake-clock.js";
import { FakeRandom } from "./fake-random.js";

/** A field as a test writes it. */
export type PeerField = readonly [name: string, value: string];

/** A frame to be sent, or one that the server has sent. */
export interface PeerFrame {
  readonly type: number;
  readonly flags?: number;
  readonly streamId?: number;
  readonly payload?: Buffer;
}

/** A frame of the server's, with the fields of a header block. */
export interface ServerFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** What a client says first. */
export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** A request as Envoy begins it. */
export const requestFields: readonly PeerField[] = [
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/headgate.Test/Echo"],
  [":authority", "headgate"],
  ["content-type", "application/grpc"],
  ["te", "trailers"],
];

/** The bytes of a frame. */
export function frame({ type, flags = 0, streamId = 0, payload }: PeerFrame): Buffer {
  const body = payload ?? Buffer.alloc(0);
  const head = Buffer.alloc(9);
  head.writeUIntBE(body.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, body]);
}

/** A header block of literals that are never indexed. Source: RFC 7541, section 6.2.3. */
export function block(fields: readonly PeerField[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.of(0x10), literal(name), literal(value)]),
  );
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  const lengths: number[] = [Math.min(bytes.length, 127)];
  for (let rest = bytes.length - 127; rest >= 0; rest = rest < 128 ? -1 : Math.floor(rest / 128)) {
    lengths.push(rest < 128 ? rest : (rest % 128) + 128);
  }
  return Buffer.concat([Buffer.from(lengths), bytes]);
}

/** A 32-bit number, as payloads hold it. */
export function uint32(...values: readonly number[]): Buffer {
  return Buffer.concat(
    values.map((value) => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(value >>> 0);
      return bytes;
    }),
  );
}

/** The payload of a SETTINGS frame. */
export function settings(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  return Buffer.concat(pairs.flatMap(([id, value]) => [Buffer.of(id >> 8, id), uint32(value)]));
}

/** A HEADERS frame that opens a stream; `flags` default to END_STREAM and END_HEADERS. */
export function request(streamId: number, flags = 0x5, fields = requestFields): Buffer {
  return frame({ type: 1, flags, streamId, payload: block(fields) });
}

/** A DATA frame. */
export function data(streamId: number, payload: Buffer | string = "", flags = 0): Buffer {
  return frame({ type: 0, flags, streamId, payload: Buffer.from(payload) });
}

/** A stream as the acceptor sees it: what came, in the order in which it was told. */
export class PeerRequest implements StreamReader {
  readonly stream: ServerStream;
  readonly fields: HeaderFields;
  readonly reported: string[] = [];
  bodyBytes = 0;
  #answersAtEnd: boolean;

  constructor(stream: ServerStream, fields: HeaderFields, answersAtEnd: boolean) {
    this.stream = stream;
    this.fields = fields;
    this.#answersAtEnd = answersAtEnd;
  }

  onData(bytes: Uint8Array, isEnd: boolean): void {
    this.bodyBytes += bytes.length;
    this.reported.push(isEnd ? `data ${bytes.length}, end` : `data ${bytes.length}`);
    if (isEnd) this.#answer();
  }

  onEnd(trailers: HeaderFields | undefined): void {
    this.reported.push(trailers === undefined ? "end" : `trailers ${trailers.count}`);
    this.#answer();
  }

  onReset(): void {
    this.reported.push("reset");
  }

  onDrain(): void {
    this.reported.push("drain");
  }

  #answer(): void {
    this.stream.consumed(this.bodyBytes);
    if (!this.#answersAtEnd) return;
    this.stream.sendHeaders([[":status", "200"]], false);
    this.stream.sendData(Buffer.from("hello"), false);
    this.stream.sendHeaders([["grpc-status", "0"]], true);
  }
}

/** A socket in memory: it takes what it is given, or nothing, as a test says. */
export class MemorySocket implements ByteStream {
  readonly writes: Buffer[] = [];
  isFull = false;
  isPaused = false;
  isEnded = false;
  isDestroyed = false;
  #data: ((chunk: Buffer) => void)[] = [];
  #others = new Map<string, (() => void)[]>();

  on(event: string, listener: ((chunk: Buffer) => void) | (() => void)): void {
    if (event === "data") this.#data.push(listener);
    else this.#others.set(event, [...(this.#others.get(event) ?? []), listener as () => void]);
  }

  emit(event: "drain" | "end" | "close" | "error"): void {
    for (const listener of this.#others.get(event) ?? []) listener();
  }

  feed(chunk: Buffer): void {
    for (const listener of this.#data) listener(chunk);
  }

  write(bytes: Uint8Array): boolean {
    if (this.isEnded) throw new Error("written after its end");
    this.writes.push(Buffer.from(bytes));
    return !this.isFull;
  }

  end(): void {
    this.isEnded = true;
  }

  destroy(): void {
    if (this.isDestroyed) return;
    this.isDestroyed = true;
    this.emit("close");
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }
}

/** How a peer's server behaves. */
export interface PeerOptions {
  /** Whether requests are answered when they have ended. Default true. */
  readonly answersAtEnd?: boolean;
  readonly ageMsMax?: number;
  readonly ageGraceMs?: number;
  /** Of the connection's randomness. Default 1. */
  readonly seed?: number;
  /** Takes requests instead. */
  readonly acceptor?: StreamAcceptor;
}

/** A client that writes frames as it likes, a connection that serves it, and no socket between. */
export class Http2Peer {
  readonly clock = new FakeClock();
  readonly socket = new MemorySocket();
  readonly connection: Http2Connection;
  readonly requests: PeerRequest[] = [];
  readonly ends: ConnectionEnd[] = [];
  readonly streamErrors: number[] = [];
  readonly bugs: unknown[] = [];
  readonly #decoder = new HpackDecoder({
    tableBytesMax: 4_096,
    listBytesMax: 1_048_576,
    fieldCountMax: 10_000,
  });
  #flushes: (() => void)[] = [];
  #parsedWrites = 0;
  #unparsed = Buffer.alloc(0);
  #frames: ServerFrame[] = [];

  constructor({
    answersAtEnd = true,
    ageMsMax = 86_400_000,
    ageGraceMs = 3_600_000,
    seed = 1,
    acceptor,
  }: PeerOptions = {}) {
    this.connection = new Http2Connection(this.socket, {
      acceptor: acceptor ?? {
        onStream: (stream, fields) => {
          const taken = new PeerRequest(stream, fields, answersAtEnd);
          this.requests.push(taken);
          return taken;
        },
      },
      events: {
        onEnd: (end) => this.ends.push(end),
        onStreamError: (code) => this.streamErrors.push(code),
        onBug: (thrown) => this.bugs.push(thrown),
      },
      clock: this.clock,
      random: new FakeRandom(seed),
      scheduleFlush: (run) => this.#flushes.push(run),
      ageMsMax,
      ageGraceMs,
    });
  }

  /** A peer that has sent its preface and its settings, and has seen the server's. */
  static greeted(options?: PeerOptions): Http2Peer {
    const peer = new Http2Peer(options);
    peer.send(preface, frame({ type: 4 }));
    peer.takeFrames();
    return peer;
  }

  /** Sends all of it as one chunk, and lets the server write what became ready. */
  send(...chunks: readonly Buffer[]): void {
    this.socket.feed(Buffer.concat(chunks));
    this.runFlushes();
  }

  /** Ends the turn: what was asked to be flushed is. */
  runFlushes(): void {
    while (this.#flushes.length > 0) this.#flushes.shift()?.();
  }

  /** Frames that the server has sent since the last call. */
  takeFrames(): readonly ServerFrame[] {
    this.runFlushes();
    const fresh = this.socket.writes.slice(this.#parsedWrites);
    this.#parsedWrites = this.socket.writes.length;
    this.#unparsed = Buffer.concat([this.#unparsed, ...fresh]);
    this.#frames = [];
    let bytes = this.#unparsed;
    while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
      const end = 9 + bytes.readUIntBE(0, 3);
      const [type, flags, streamId] = [bytes[3] ?? 0, bytes[4] ?? 0, bytes.readUInt32BE(5)];
      this.#frames.push({ type, flags, streamId, payload: bytes.subarray(9, end) });
      bytes = bytes.subarray(end);
    }
    this.#unparsed = bytes;
    return this.#frames;
  }

  /** The same, each as a line. */
  takeLines(): readonly string[] {
    return this.takeFrames().map((sent) => this.#line(sent));
  }

  /** The code of the GOAWAY that the server ended with; undefined while it goes on. */
  endCode(): number | undefined {
    const last = this.takeFrames().at(-1);
    return this.socket.isEnded && last?.type === 7 ? last.payload.readUInt32BE(4) : undefined;
  }

  #line({ type, flags, streamId, payload }: ServerFrame): string {
    const ends = (flags & 1) !== 0 ? ", end" : "";
    switch (type) {
      case 0:
        return `${streamId} DATA ${payload.length}${ends}`;
      case 1:
        return `${streamId} HEADERS ${this.#fields(payload)}${ends}`;
      case 3:
        return `${streamId} RST_STREAM ${payload.readUInt32BE()}`;
      case 4:
        return (flags & 1) !== 0 ? "SETTINGS ack" : "SETTINGS";
      case 6:
        return `PING ${payload.toString("hex")}${(flags & 1) !== 0 ? " ack" : ""}`;
      case 7:
        return `GOAWAY ${payload.readUInt32BE(0)} ${payload.readUInt32BE(4)}`;
      case 8:
        return `${streamId} WINDOW_UPDATE ${payload.readUInt32BE()}`;
      default:
        return `type ${type}`;
    }
  }

  #fields(payload: Buffer): string {
    const fields = this.#decoder.decode(payload, 0, payload.length);
    const count = fields?.count ?? 0;
    return Array.from({ length: count }, (_, i) => `${fields?.name(i)}=${fields?.value(i)}`).join();
  }
}
