import { StreamMap } from "../../src/wire/http2/stream-map.js";
import type { CallOutcome } from "./call-outcome.js";
import {
  encodeFrame,
  encodeHeaderBlock,
  FrameConnection,
  frameFlag,
  frameType,
  type HeaderField,
  type ReceivedFrame,
} from "./frame-connection.js";

/**
 * GET requests over one HTTP/2 connection, prepared before, so that the load costs little next to
 * the proxy under test, and the proxy little for its client. It trusts its server.
 */
export class Http2Client {
  readonly #connection: FrameConnection;
  readonly #blocks: readonly Buffer[];
  readonly #requests = new StreamMap<Request>();

  private constructor(connection: FrameConnection, heads: readonly Head[]) {
    this.#connection = connection;
    this.#blocks = heads.map((head) => encodeHeaderBlock([...requestLine, ...head]));
    connection.listen({
      onFrame: (frame) => this.#onFrame(frame),
      onClose: () => this.#failAll(),
    });
  }

  /**
   * Connects to a plaintext HTTP/2 server on loopback; rejects when nobody listens.
   *
   * @param heads header fields of the requests
   */
  static async connect(port: number, heads: readonly Head[]): Promise<Http2Client> {
    return new Http2Client(await FrameConnection.connect(port), heads);
  }

  get(at: number, done: (outcome: CallOutcome) => void): void {
    const streamId = this.#connection.takeStreamId();
    this.#requests.add({ id: streamId, done, outcome: "failed" });
    const flags = frameFlag.endHeaders | frameFlag.endStream;
    const payload = this.#blocks[at % this.#blocks.length] ?? Buffer.alloc(0);
    this.#connection.send(encodeFrame({ type: frameType.headers, flags, streamId, payload }));
  }

  close(): void {
    this.#connection.close();
  }

  #onFrame({ type, flags, streamId, payload }: ReceivedFrame): void {
    const request = this.#requests.get(streamId);
    if (request === undefined) return;
    if (type === frameType.headers && isStatus200(payload)) request.outcome = "allowed";
    const isReset = type === frameType.rstStream;
    const canEnd = type === frameType.headers || type === frameType.data;
    if (!isReset && !(canEnd && (flags & frameFlag.endStream) !== 0)) return;
    this.#requests.delete(streamId);
    request.done(isReset ? "failed" : request.outcome);
  }

  #failAll(): void {
    const requests = this.#requests.inOrder();
    this.#requests.clear();
    for (const { done } of requests) done("failed");
  }
}

/** Header fields of a request, besides its method and path. */
export type Head = readonly HeaderField[];

interface Request {
  readonly id: number;
  readonly done: (outcome: CallOutcome) => void;
  outcome: CallOutcome;
}

const requestLine: Head = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "bench"],
];

/**
 * Whether a block begins with `:status: 200`, which has a place in the static table, maybe after
 * new sizes of the dynamic one. Source: RFC 7541, sections 6.1, 6.3 and appendix A.
 */
function isStatus200(block: Buffer): boolean {
  let at = 0;
  while (((block[at] ?? 0) & 0xe0) === 0x20) {
    const isLong = ((block[at] ?? 0) & 0x1f) === 0x1f;
    at += 1;
    if (!isLong) continue;
    while (((block[at] ?? 0) & 0x80) !== 0) at += 1;
    at += 1;
  }
  return block[at] === 0x88;
}
