import { connect, type Socket } from "node:net";
import { encodeCommand } from "../support/resp-client.js";
import type { CallOutcome } from "./call-outcome.js";

/** Lines of a reply: an array of five numbers, of which the first is the verdict. */
const replyLines = 6;

/** What allows a request: 0 of `CL.THROTTLE`, as redis-cell has it; 1 of throttlecrab's command. */
const allowedReplies: Readonly<Record<string, string>> = { "CL.THROTTLE": ":0", THROTTLE: ":1" };

/** One connection that sends throttle commands without waiting for replies, which come in order. */
export class ThrottleClient {
  readonly #socket: Socket;
  readonly #commands: readonly Buffer[];
  readonly #allowedReply: string | undefined;
  readonly #open: ((outcome: CallOutcome) => void)[] = [];
  #lines: string[] = [];
  #rest = "";

  /** Connects to a server on loopback; rejects when nobody listens. */
  static connect(port: number, commands: readonly (readonly string[])[]): Promise<ThrottleClient> {
    const socket = connect({ host: "127.0.0.1", port, noDelay: true });
    return new Promise((resolve, reject) => {
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new ThrottleClient(socket, commands));
      });
    });
  }

  private constructor(socket: Socket, commands: readonly (readonly string[])[]) {
    this.#socket = socket;
    this.#commands = commands.map((parts) => encodeCommand(...parts));
    this.#allowedReply = allowedReplies[commands[0]?.[0] ?? ""];
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => this.#read(text));
    socket.on("error", () => this.#failAll());
    socket.on("close", () => this.#failAll());
  }

  call(at: number, done: (outcome: CallOutcome) => void): void {
    const command = this.#commands[at % this.#commands.length];
    if (command === undefined || this.#socket.destroyed) {
      done("failed");
      return;
    }
    this.#open.push(done);
    // The commands of a turn go out together.
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork();
      setImmediate(() => this.#socket.uncork());
    }
    this.#socket.write(command);
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split("\r\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("-")) {
        this.#open.shift()?.("failed");
        continue;
      }
      this.#lines.push(line);
      if (this.#lines.length < replyLines) continue;
      const isAllowed = this.#lines[1] === this.#allowedReply;
      this.#lines = [];
      this.#open.shift()?.(isAllowed ? "allowed" : "denied");
    }
  }

  #failAll(): void {
    for (const done of this.#open.splice(0)) done("failed");
  }
}
