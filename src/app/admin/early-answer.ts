import { type IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Clock } from "../../core/base/clock.js";
import { replayMessageBytesMax } from "../../rpc/admin/methods.js";
import type { RefusalAnswer } from "../../rpc/admin/refusal-answer.js";

/** What is read at most of a refused request: the longest that anybody may send. */
export const restBytesMax = replayMessageBytesMax + 65_536;

/** How long it may take to come, in milliseconds. */
const restMsMax = 5_000;

/** A request whose body nobody has read, and where its answer goes. */
interface EarlyExchange {
  readonly request: IncomingMessage | Http2ServerRequest;
  readonly response: ServerResponse | Http2ServerResponse;
}

/**
 * Answers before a request's body has come.
 *
 * In HTTP/1.1 the connection ends with it. It stays open for as long as the rest comes, within
 * bounds: a socket that is closed with bytes unread takes back the answer as well, from clients
 * that write all before they read. Nothing of the rest is kept. HTTP/2 resets the one stream.
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
  // All of the answer, so that whoever looks has it at once; its end closes the connection.
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
