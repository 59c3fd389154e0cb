import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { createRequire } from "node:module";
import type { AddressInfo, Server, Socket } from "node:net";
import fastify from "fastify";
import { expressAdmission, type WithAdmission } from "../../src/client/server/express.js";
import { fastifyAdmission } from "../../src/client/server/fastify.js";
import { httpAdmission } from "../../src/client/server/node-http.js";
import type { RequestPermit } from "../../src/client/server/request-permit.js";
import type { ServerAdmission } from "../../src/client/server/server-admission.js";

/** The parts of a response that both versions of HTTP have. */
export interface RawResponse {
  statusCode: number;
  write(text: string): unknown;
  end(): unknown;
  end(text: string): unknown;
}

/** What a service does with a request that was admitted. */
export interface AdmittedWork {
  readonly path: string;
  readonly response: RawResponse;
  readonly permit: RequestPermit;
}

/** Its work. It may throw. */
export type ServerWork = (work: AdmittedWork) => void;

/** The servers behind which adapters are. */
export const serverKinds = ["node:http", "Express", "Fastify", "node:http2"] as const;

/** One of them. */
export type ServerKind = (typeof serverKinds)[number];

/** A server on a free port of the loopback, behind an adapter. */
export interface AdmittingServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Starts one. */
export function startAdmittingServer(
  kind: ServerKind,
  admission: ServerAdmission,
  work: ServerWork,
): Promise<AdmittingServer> {
  switch (kind) {
    case "node:http":
      return listen(nodeServer(admission, work));
    case "node:http2":
      return listen(http2Server(admission, work));
    case "Express":
      return listen(createServer(expressApp(admission, work)));
    case "Fastify":
      return fastifyServer(admission, work);
  }
}

function nodeServer(admission: ServerAdmission, work: ServerWork): Server {
  const admitted = httpAdmission<IncomingMessage, ServerResponse>(
    admission,
    ({ url = "" }, response, permit) => work({ path: url, response, permit }),
  );
  return createServer((request, response) =>
    answering(response, () => admitted(request, response)),
  );
}

function http2Server(admission: ServerAdmission, work: ServerWork): Server {
  const admitted = httpAdmission<Http2ServerRequest, Http2ServerResponse>(
    admission,
    ({ url }, response, permit) => work({ path: url, response, permit }),
  );
  return createHttp2Server((request, response) =>
    answering(response, () => admitted(request, response)),
  );
}

/** As a framework does it: what a handler throws would end the process. */
function answering(response: RawResponse, handle: () => void): void {
  try {
    handle();
  } catch {
    response.statusCode = 500;
    response.end();
  }
}

/** What is used of Express, whose package has no types. */
interface ExpressApp {
  (request: IncomingMessage, response: ServerResponse): void;
  use(handler: (...given: never[]) => void): void;
}

function expressApp(admission: ServerAdmission, work: ServerWork): ExpressApp {
  const express: () => ExpressApp = createRequire(import.meta.url)("express");
  const app = express();
  app.use(expressAdmission(admission));
  app.use((request: IncomingMessage & WithAdmission, response: ServerResponse) => {
    const { admission: permit, url = "" } = request;
    if (permit === undefined) throw new Error("it went past the middleware");
    work({ path: url, response, permit });
  });
  // It would write the error to the standard error.
  app.use((_error: unknown, _request: unknown, response: ServerResponse, _next: unknown) => {
    response.statusCode = 500;
    response.end();
  });
  return app;
}

async function fastifyServer(
  admission: ServerAdmission,
  work: ServerWork,
): Promise<AdmittingServer> {
  const app = fastify({ forceCloseConnections: true });
  await app.register(fastifyAdmission, { admission });
  // Handlers read no body here.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", async (_request: unknown, body: unknown) => body);
  app.all("/*", (request, reply) => {
    work({ path: request.url, response: reply.raw, permit: request.admission });
    reply.hijack();
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  return { port: portOf(app.server), close: () => app.close() };
}

async function listen(server: Server): Promise<AdmittingServer> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("session", (session: ServerHttp2Session) => session.on("error", () => {}));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  return { port: portOf(server), close };
}

function portOf(server: Server): number {
  const address = server.address() as AddressInfo;
  return address.port;
}
