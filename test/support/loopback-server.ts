import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Stage } from "./stage.js";

/** Lets a server listen on a free port of this machine, until the stage ends; answers the port. */
export async function listenOnLoopback(stage: Stage, server: Server): Promise<number> {
  // Envoy must never find a connection closed that it is about to use.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
