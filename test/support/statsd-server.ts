import { createSocket } from "node:dgram";
import { createServer, type Socket } from "node:net";
import type { Stage } from "./stage.js";

/** A receiver of StatsD lines on a port of this machine. */
export interface StatsdServer {
  readonly port: number;
  /** Packets as they arrived; over TCP, what was read at a time. */
  readonly packets: readonly string[];
  /** All lines so far. */
  readonly lines: () => readonly string[];
  close(): Promise<void>;
}

/** Receives over UDP. */
export async function startUdpStatsd(stage: Pick<Stage, "atEnd">, port = 0): Promise<StatsdServer> {
  const packets: string[] = [];
  const socket = createSocket("udp4");
  socket.on("message", (message) => packets.push(message.toString("utf8")));
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(port, "127.0.0.1", resolve);
  });
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    await new Promise<void>((resolve) => socket.close(resolve));
  };
  stage.atEnd(close);
  return { port: socket.address().port, packets, lines: () => linesOf(packets), close };
}

/** Receives over TCP. */
export async function startTcpStatsd(stage: Pick<Stage, "atEnd">): Promise<StatsdServer> {
  const packets: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => packets.push(text));
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      for (const socket of sockets) socket.destroy();
      server.close(() => resolve());
    });
  stage.atEnd(close);
  const port = typeof address === "object" ? (address?.port ?? 0) : 0;
  return { port, packets, lines: () => linesOf(packets), close };
}

function linesOf(packets: readonly string[]): readonly string[] {
  return packets
    .join("")
    .split("\n")
    .filter((line) => line !== "");
}

/** The sum of a counter's increases in lines without tags. */
export function countedBy(lines: readonly string[], name: string): number {
  let sum = 0;
  for (const line of lines) {
    const [, found, increase] = /^([^:]+):(\d+)\|c/.exec(line) ?? [];
    if (found === name) sum += Number(increase);
  }
  return sum;
}
