import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { Stage } from "./stage.js";

/** A server that changes to whatever protocol it is asked for, and answers each line with it. */
export async function startUpgradingUpstream(stage: Stage): Promise<number> {
  const sockets = new Set<Duplex>();
  const server = createServer((_, response) => response.end("not upgraded\n"));
  server.on("upgrade", ({ headers }, socket: Duplex) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    const upgrade = `connection: upgrade\r\nupgrade: ${headers.upgrade}\r\n\r\n`;
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${upgrade}`);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** What an attempt to change protocols led to. */
export type UpgradeOutcome =
  | { readonly kind: "upgraded"; readonly echo: (text: string) => Promise<string> }
  | { readonly kind: "answered"; readonly status: number };

/** Asks for another protocol; the connection ends with the stage. */
export function askUpgrade(
  stage: Stage,
  {
    port,
    protocol,
    host,
  }: { readonly port: number; readonly protocol: string; readonly host: string },
): Promise<UpgradeOutcome> {
  const headers = { connection: "upgrade", upgrade: protocol, host };
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, headers });
    sent.once("error", reject);
    sent.once("response", (response) => {
      response.resume();
      resolve({ kind: "answered", status: response.statusCode ?? 0 });
    });
    sent.once("upgrade", (_, socket) => {
      stage.atEnd(() => {
        socket.destroy();
      });
      socket.on("error", () => socket.destroy());
      resolve({ kind: "upgraded", echo: (text) => echo(socket, text) });
    });
    sent.end();
  });
}

/** Rejects where the connection ends instead. */
function echo(socket: Duplex, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => reject(new Error("the connection has ended"));
    socket.once("close", onClose);
    socket.once("data", (data: Buffer) => {
      socket.off("close", onClose);
      resolve(data.toString("utf8"));
    });
    socket.write(text);
  });
}
