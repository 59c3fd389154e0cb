import { StreamMap } from "../../src/wire/http2/stream-map.js";
import {
  encodeCallHeaders,
  encodeFrame,
  encodeGrpcMessage,
  FrameConnection,
  frameFlag,
  frameType,
  grpcHeadBytes,
  type ReceivedFrame,
} from "./frame-connection.js";

/** Makes unary calls of one gRPC method on one connection. */
export class FrameClient {
  readonly #connection: FrameConnection;
  readonly #headerBlock: Buffer;
  readonly #calls = new StreamMap<Call>();

  private constructor(connection: FrameConnection, path: string) {
    this.#connection = connection;
    this.#headerBlock = encodeCallHeaders(path);
    connection.listen({
      onFrame: (frame) => this.#onFrame(frame),
      onClose: () => this.#failAll(),
    });
  }

  /** Connects to a plaintext HTTP/2 server on loopback; rejects when nobody listens. */
  static async connect(port: number, path: string): Promise<FrameClient> {
    return new FrameClient(await FrameConnection.connect(port), path);
  }

  /** Sends one message; `done` gets the answer's bytes, or undefined when the call failed. */
  call(message: Buffer, done: (answer: Buffer | undefined) => void): void {
    const streamId = this.#connection.takeStreamId();
    this.#calls.add({ id: streamId, done, answer: undefined });
    this.#connection.send(
      encodeFrame({
        type: frameType.headers,
        flags: frameFlag.endHeaders,
        streamId,
        payload: this.#headerBlock,
      }),
    );
    this.#connection.send(
      encodeFrame({
        type: frameType.data,
        flags: frameFlag.endStream,
        streamId,
        payload: encodeGrpcMessage(message),
      }),
    );
  }

  close(): void {
    this.#connection.close();
  }

  #onFrame({ type, flags, streamId, payload }: ReceivedFrame): void {
    const call = this.#calls.get(streamId);
    if (call === undefined) return;
    if (type === frameType.data) call.answer = Buffer.from(payload.subarray(grpcHeadBytes));
    const isReset = type === frameType.rstStream;
    const isEnd = type === frameType.headers && (flags & frameFlag.endStream) !== 0;
    if (!isEnd && !isReset) return;
    this.#calls.delete(streamId);
    call.done(isReset ? undefined : call.answer);
  }

  #failAll(): void {
    const calls = this.#calls.inOrder();
    this.#calls.clear();
    for (const call of calls) call.done(undefined);
  }
}

interface Call {
  readonly id: number;
  readonly done: (answer: Buffer | undefined) => void;
  answer: Buffer | undefined;
}
