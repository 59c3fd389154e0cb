import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Stage } from "./stage.js";

/** A server that takes connections and reads nothing: whoever sends to it has to keep it. */
export interface UnreadUpstream {
  readonly port: number;
  /** Ends all connections, with what nobody has read. */
  hangUp(): void;
}

/** Starts one; it ends with the stage. */
export async function startUnreadUpstream(stage: Stage): Promise<UnreadUpstream> {
  const sockets = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const hangUp = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  stage.atEnd(() => {
    hangUp();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, hangUp };
}

const piece = Buffer.alloc(2 ** 18, "a");

/** A request to a server that does not answer; whoever stands between may. */
export interface WaitingRequest {
  /** The first line of its answer, once there is one. */
  readonly statusLine: string | undefined;
}

/** Sends one whose body is as long as the other side takes it; it ends with the stage. */
export function sendWaitingRequest(
  stage: Stage,
  { port, bodyBytes }: { readonly port: number; readonly bodyBytes: number },
): WaitingRequest {
  const socket = connect(port, "127.0.0.1");
  let statusLine: string | undefined;
  let sentBytes = 0;
  const pump = (): void => {
    while (sentBytes < bodyBytes) {
      sentBytes += piece.length;
      if (!socket.write(piece)) return void socket.once("drain", pump);
    }
  };
  socket.on("error", () => {});
  socket.once("data", (bytes) => {
    statusLine = bytes.toString("latin1").split("\r\n")[0];
  });
  socket.write(`POST / HTTP/1.1\r\nhost: tests\r\ncontent-length: ${bodyBytes}\r\n\r\n`);
  pump();
  stage.atEnd(() => socket.destroy());
  return {
    get statusLine() {
      return statusLine;
    },
  };
}
