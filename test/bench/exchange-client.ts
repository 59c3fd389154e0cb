import { StreamMap } from "../../src/wire/http2/stream-map.js";
import {
  encodeCallHeaders,
  encodeFrame,
  encodeGrpcMessage,
  FrameConnection,
  frameFlag,
  frameType,
  type ReceivedFrame,
} from "./frame-connection.js";

/** Two messages of a caller, each sent when the one before was answered. */
export type Exchanged = readonly [first: Buffer, second: Buffer];

/**
 * Makes bidirectional calls as Envoy's ext_proc filter does: a stream each, the request's headers
 * and their answer, the response's headers and their answer, then the client ends its side and the
 * server its own.
 */
export class ExchangeClient {
  readonly #connection: FrameConnection;
  readonly #headerBlock: Buffer;
  readonly #exchanges = new StreamMap<Exchange>();

  private constructor(connection: FrameConnection, path: string) {
    this.#connection = connection;
    this.#headerBlock = encodeCallHeaders(path);
    connection.listen({
      onFrame: (frame) => this.#onFrame(frame),
      onClose: () => this.#failAll(),
    });
  }

  /** Connects to a plaintext HTTP/2 server on loopback; rejects when nobody listens. */
  static async connect(port: number, path: string): Promise<ExchangeClient> {
    return new ExchangeClient(await FrameConnection.connect(port), path);
  }

  /** `done` learns whether there were two answers, and an end of the server's after ours. */
  exchange([first, second]: Exchanged, done: (isWhole: boolean) => void): void {
    const streamId = this.#connection.takeStreamId();
    this.#exchanges.add({ id: streamId, second, done, answerCount: 0 });
    const flags = frameFlag.endHeaders;
    this.#connection.send(
      encodeFrame({ type: frameType.headers, flags, streamId, payload: this.#headerBlock }),
    );
    this.#sendMessage(streamId, first);
  }

  close(): void {
    this.#connection.close();
  }

  #sendMessage(streamId: number, message: Buffer): void {
    const payload = encodeGrpcMessage(message);
    this.#connection.send(encodeFrame({ type: frameType.data, flags: 0, streamId, payload }));
  }

  #onFrame({ type, flags, streamId, payload }: ReceivedFrame): void {
    const exchange = this.#exchanges.get(streamId);
    if (exchange === undefined) return;
    // An answer is a frame of its own, so small that no server cuts it.
    if (type === frameType.data && payload.length > 0) {
      exchange.answerCount += 1;
      if (exchange.answerCount === 1) this.#sendMessage(streamId, exchange.second);
      else this.#connection.send(endOf(streamId));
    }
    const isReset = type === frameType.rstStream;
    const isEnd = type === frameType.headers && (flags & frameFlag.endStream) !== 0;
    if (!isEnd && !isReset) return;
    this.#exchanges.delete(streamId);
    exchange.done(isEnd && exchange.answerCount === 2);
  }

  #failAll(): void {
    const exchanges = this.#exchanges.inOrder();
    this.#exchanges.clear();
    for (const { done } of exchanges) done(false);
  }
}

interface Exchange {
  readonly id: number;
  readonly second: Buffer;
  readonly done: (isWhole: boolean) => void;
  answerCount: number;
}

const noBytes = Buffer.alloc(0);

function endOf(streamId: number): Buffer {
  const flags = frameFlag.endStream;
  return encodeFrame({ type: frameType.data, flags, streamId, payload: noBytes });
}
