import { createServer } from "node:http";
import { listen } from "../app/base/listen.js";

/** A running service behind Envoy. */
export interface Upstream {
  readonly port: number;
  close(): void;
}

/** Connections at a time: Envoy opens a few, curl at most one more. */
const upstreamConnectionsMax = 1_000;

/**
 * Starts the small service that the demo's Envoy stands before: it answers every request alike.
 *
 * @throws ServiceError LISTEN_FAILED
 */
export async function startUpstream(place: {
  readonly port: number;
  readonly portSetting: string;
}): Promise<Upstream> {
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader("content-type", "text/plain; charset=utf-8");
    response.end("Hello from the service: Headgate let this request in.\n");
  });
  // Envoy keeps its connections; one that we closed first would answer a request with 503.
  server.keepAliveTimeout = 0;
  const { port } = await listen(server, {
    ...place,
    host: "127.0.0.1",
    hostSetting: "127.0.0.1",
    connectionsMax: upstreamConnectionsMax,
  });
  return {
    port,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
