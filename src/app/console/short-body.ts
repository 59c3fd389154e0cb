import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";

/** The maximum time to receive a short body, in milliseconds. */
const bodyMsMax = 10_000;

/** Reads a short body, or returns the HTTP status of the failure. */
export function readShortBody(
  request: IncomingMessage | Http2ServerRequest,
  bytesMax: number,
  clock: Pick<Clock, "schedule">,
): Promise<Buffer | number> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const end = (outcome: Buffer | number): void => {
      cancel();
      request.removeListener("data", take);
      // The rest is read and dropped, until the request times out.
      request.resume();
      resolve(outcome);
    };
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > bytesMax) end(httpStatuses.contentTooLarge);
      else chunks.push(chunk);
    };
    const cancel = clock.schedule(bodyMsMax, () => end(httpStatuses.requestTimeout));
    request.on("data", take);
    request.once("end", () => end(Buffer.concat(chunks)));
    request.once("close", () => end(httpStatuses.badRequest));
  });
}
