import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { listenOnLoopback } from "./loopback-server.js";
import type { Stage } from "./stage.js";

/** A request as a scripted service has received it. */
export interface ServiceRequest {
  readonly message: IncomingMessage;
  readonly response: ServerResponse;
  /** Resolves when its connection, or its response, has ended. */
  readonly closed: Promise<void>;
  /** Its whole body. */
  body(): Promise<string>;
}

/** A service that a test answers for. */
export interface ScriptedService {
  readonly url: string;
  readonly requests: readonly ServiceRequest[];
  /** Connections that have been made. */
  readonly connectionCount: number;
  /** Answers a request, by how many came before it. */
  answer: (request: ServiceRequest, index: number) => void;
  /** Takes over the connection of a request for an upgrade. */
  onUpgrade: (socket: Duplex) => void;
}

/** Starts one on a free port; it ends with the stage. Until a test says more it answers 200. */
export async function startScriptedService(stage: Stage): Promise<ScriptedService> {
  const requests: ServiceRequest[] = [];
  let connectionCount = 0;
  const server = createServer((message, response) => {
    const request: ServiceRequest = {
      message,
      response,
      closed: new Promise((resolve) => response.once("close", resolve)),
      body: async () => {
        let text = "";
        for await (const chunk of message.setEncoding("utf8")) text += chunk;
        return text;
      },
    };
    requests.push(request);
    service.answer(request, requests.length - 1);
  });
  server.on("connection", () => {
    connectionCount += 1;
  });
  server.on("upgrade", (_message, socket) => service.onUpgrade(socket));
  const port = await listenOnLoopback(stage, server);
  const service: ScriptedService = {
    url: `http://127.0.0.1:${port}/orders`,
    requests,
    get connectionCount() {
      return connectionCount;
    },
    answer: ({ response }) => response.end("ok"),
    onUpgrade: (socket) => socket.destroy(),
  };
  return service;
}
