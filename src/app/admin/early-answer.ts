import { type IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Clock } from "../../core/base/clock.js";
import { replayMessageBytesMax } from "../../rpc/admin/methods.js";
import type { RefusalAnswer } from "../../rpc/admin/refusal-answer.js";

/** Maximum bytes that are read of a refused request: the maximum size of any request. */
export const restBytesMax = replayMessageBytesMax + 65_536;

/** Maximum time to receive them, in milliseconds. */
const restMsMax = 5_000;

/** A request with an unread body, and its response. */
interface EarlyExchange {
  readonly request: IncomingMessage | Http2ServerRequest;
  readonly response: ServerResponse | Http2ServerResponse;
}

/**
 * Answers before a request's body has arrived.
 *
 * In HTTP/1.1, this ends the connection. It stays open while the rest arrives, within bounds:
 * closing a socket with unread bytes also discards the response, for clients that write everything
 * before they read. The rest is not kept. HTTP/2 resets only the stream.
 *
 * Source: RFC 9112, section 9.6 (closing in stages).
 */
export function answerEarly(
  { request, response }: EarlyExchange,
  { status, headers, body }: RefusalAnswer,
  clock: Pick<Clock, "schedule">,
): void {
  if (!(response instanceof ServerResponse)) {
    response.writeHead(status, headers);
    response.end(body);
    return;
  }
  const bytes = Buffer.from(body);
  const length = String(bytes.length);
  response.writeHead(status, { ...headers, connection: "close", "content-length": length });
  // Sends the whole response, so that the client has it at once. Its end closes the connection.
  response.flushHeaders();
  if (bytes.length > 0) response.write(bytes);
  let leftBytes = restBytesMax;
  const end = (): void => {
    cancel();
    response.end();
  };
  const cancel = clock.schedule(restMsMax, end);
  request.once("end", end);
  request.once("close", end);
  request.on("data", (chunk: Buffer) => {
    leftBytes -= chunk.length;
    if (leftBytes < 0) end();
  });
}
