import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { systemClock } from "../../src/host/clock.js";
import { listenOnLoopback } from "./loopback-server.js";
import type { Stage } from "./stage.js";

/** The small server behind Envoy. */
export interface Upstream {
  readonly port: number;
  /** Requests it has seen so far. */
  readonly requestCount: number;
  /** The most that it has had in work at once. */
  readonly inWorkMost: number;
}

/** Request header whose value comes back as `x-tokens-used`: a cost known after the response. */
export const tokensHeader = "x-reply-tokens";

/** Starts a server that answers 200 to everything, after so long. */
export async function startUpstream(stage: Stage, workMs = 0): Promise<Upstream> {
  let requestCount = 0;
  let inWorkCount = 0;
  let inWorkMost = 0;
  const server = createServer((request, response) => {
    requestCount += 1;
    const tokens = request.headers[tokensHeader];
    if (typeof tokens === "string") response.setHeader("x-tokens-used", tokens);
    request.resume();
    inWorkCount += 1;
    inWorkMost = Math.max(inWorkMost, inWorkCount);
    const answer = (): void => {
      inWorkCount -= 1;
      response.end("upstream\n");
    };
    if (workMs === 0) answer();
    else systemClock.schedule(workMs, answer);
  });
  const port = await listenOnLoopback(stage, server);
  return {
    port,
    get requestCount() {
      return requestCount;
    },
    get inWorkMost() {
      return inWorkMost;
    },
  };
}

/**
 * Starts a server that answers 200 to everything, over HTTP/1.1 or HTTP/2 without TLS, as its
 * clients begin.
 */
export async function startMixedUpstream(stage: Stage): Promise<Pick<Upstream, "port">> {
  const http1 = createServer((_, response) => response.end("upstream\n"));
  const http2 = createHttp2Server((_, response) => response.end("upstream\n"));
  // Envoy must never find a connection closed that it is about to use.
  http1.keepAliveTimeout = 0;
  const server = createTcpServer((socket) => {
    stage.atEnd(() => socket.destroy());
    socket.on("error", () => {});
    socket.once("data", (first) => {
      socket.pause();
      socket.unshift(first);
      const isHttp2 = first.toString("latin1", 0, 3) === "PRI";
      (isHttp2 ? http2 : http1).emit("connection", socket);
      // The other one reads what is left by itself.
      if (!isHttp2) socket.resume();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => void server.close());
  return { port: (server.address() as AddressInfo).port };
}
