import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Stage } from "./stage.js";

/** The small server behind Envoy. */
export interface Upstream {
  readonly port: number;
  /** Requests it has seen so far. */
  readonly requestCount: number;
}

/** Request header whose value comes back as `x-tokens-used`: a cost known after the response. */
export const tokensHeader = "x-reply-tokens";

/** Starts a server that answers 200 to everything. */
export async function startUpstream(stage: Stage): Promise<Upstream> {
  let requestCount = 0;
  const server = createServer((request, response) => {
    requestCount += 1;
    const tokens = request.headers[tokensHeader];
    if (typeof tokens === "string") response.setHeader("x-tokens-used", tokens);
    request.resume();
    response.end("upstream\n");
  });
  // Envoy must never find a connection closed that it is about to use.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    get requestCount() {
      return requestCount;
    },
  };
}
