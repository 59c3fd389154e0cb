import { connect, type Socket } from "node:net";
import type { CallOutcome } from "./call-outcome.js";

/**
 * One keep-alive connection of HTTP/1.1 that sends GET requests, one at a time, prepared before, so
 * that the load costs little next to the proxy under test. It trusts its server: an answer has a
 * status line and a `content-length`.
 */
export class Http1Client {
  readonly #socket: Socket;
  readonly #requests: readonly Buffer[];
  #received = "";
  #done: ((outcome: CallOutcome) => void) | undefined;

  private constructor(socket: Socket, heads: readonly string[]) {
    this.#socket = socket;
    this.#requests = heads.map((head) => Buffer.from(`GET / HTTP/1.1\r\n${head}\r\n\r\n`));
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (text) => this.#read(String(text)));
    socket.on("close", () => this.#finish("failed"));
    socket.on("error", () => this.#finish("failed"));
  }

  /**
   * Connects to a server on loopback; rejects when nobody listens.
   *
   * @param heads header fields of the requests, `host` among them: lines without the last CRLF
   */
  static connect(port: number, heads: readonly string[]): Promise<Http1Client> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port });
      socket.once("error", reject);
      socket.once("connect", () => resolve(new Http1Client(socket, heads)));
    });
  }

  /** Sends one request; the one before must have been answered. */
  get(at: number, done: (outcome: CallOutcome) => void): void {
    if (this.#done !== undefined) throw new Error("a connection has one request at a time");
    this.#done = done;
    this.#socket.write(this.#requests[at % this.#requests.length] ?? "");
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(text: string): void {
    this.#received = this.#received === "" ? text : this.#received + text;
    const received = this.#received;
    const headEnd = received.indexOf("\r\n\r\n");
    if (headEnd === -1) return;
    const length = /\r\ncontent-length: (\d+)\r\n/.exec(received)?.[1];
    if (length === undefined) throw new Error(`no content-length: ${received.slice(0, 80)}`);
    if (received.length < headEnd + 4 + Number(length)) return;
    this.#received = "";
    // "HTTP/1.1 200 OK"
    const status = received.slice(9, 12);
    this.#finish(status === "200" ? "allowed" : status === "429" ? "denied" : "failed");
  }

  #finish(outcome: CallOutcome): void {
    const done = this.#done;
    this.#done = undefined;
    done?.(outcome);
  }
}
