import { connect, type Socket } from "node:net";
import type { Stage } from "./stage.js";

/** A command as clients send it: an array of bulk strings. */
export function encodeCommand(...parts: readonly string[]): Buffer {
  const bulks = parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`);
  return Buffer.from(`*${parts.length}\r\n${bulks.join("")}`);
}

/** A connection that sends bytes as a test says, and keeps what comes back. */
export class RawRespClient {
  readonly socket: Socket;
  received = "";
  isEnded = false;

  constructor(stage: Stage, port: number) {
    this.socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
    this.socket.on("data", (chunk: Buffer) => {
      this.received += chunk.toString("latin1");
    });
    this.socket.on("error", () => {});
    this.socket.on("end", () => {
      this.isEnded = true;
      this.socket.end();
    });
    this.socket.on("close", () => {
      this.isEnded = true;
    });
    stage.atEnd(() => void this.socket.destroy());
  }
}
