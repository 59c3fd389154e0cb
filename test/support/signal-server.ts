import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Socket } from "node:net";
import type { TestCertificate } from "./certificates.js";
import type { Stage } from "./stage.js";

/** What a source was asked. */
export interface SignalQuestion {
  readonly url: string;
  readonly authorization: string | undefined;
  readonly accept: string | undefined;
}

/** A source on loopback that answers as a test says, and remembers what it was asked. */
export class SignalServer {
  readonly questions: SignalQuestion[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  answer: (response: ServerResponse, request: IncomingMessage) => void;

  private constructor(text: string, tls: TestCertificate | undefined) {
    this.answer = (response) => response.end(text);
    const listener = (request: IncomingMessage, response: ServerResponse): void => {
      const { url = "", headers } = request;
      const { authorization, accept } = headers;
      this.questions.push({ url, authorization, accept });
      this.answer(response, request);
    };
    this.#server =
      tls === undefined
        ? createServer(listener)
        : createTlsServer({ key: tls.key, cert: tls.certificate }, listener);
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  /** Starts one that answers with the text until it is told otherwise, and ends with the stage. */
  static async start(stage: Stage, text = "", tls?: TestCertificate): Promise<SignalServer> {
    const server = new SignalServer(text, tls);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    stage.atEnd(() => server.stop());
    return server;
  }

  /** Host and port. */
  get authority(): string {
    const address = this.#server.address();
    if (typeof address !== "object" || !address) throw new Error("the server does not listen");
    return `127.0.0.1:${address.port}`;
  }

  /** Connections that are open. */
  get connectionCount(): number {
    return this.#sockets.size;
  }

  say(text: string): void {
    this.answer = (response) => response.end(text);
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
