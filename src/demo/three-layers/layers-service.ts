import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { listen } from "../../app/base/listen.js";
import type { Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { ServiceCounts } from "./layers-counts.js";
import { meanWorkMs, workHeader } from "./layers-settings.js";
import { LayersWorkers } from "./layers-workers.js";

/** Handles a request; `signal` aborts where its work is of use to nobody any more. */
export type Work = (
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal | undefined,
) => void;

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

interface ServiceParts {
  readonly clock: Clock;
  /** Puts the layer in the service around its work. */
  readonly protect: (work: Work) => Handler;
}

/** The work that a request may ask for, in milliseconds. */
const workMsMax = 10_000;

/** Envoy opens one for each request in flight. */
const connectionsMax = 20_000;

/** The service: an HTTP server whose requests take turns at its workers. */
export class LayersService {
  readonly #workers: LayersWorkers;
  readonly #server: Server;
  /** Whether the layer in the service is on. */
  isProtected = true;

  constructor({ clock, protect }: ServiceParts) {
    this.#workers = new LayersWorkers(clock);
    const protectedHandler = protect(this.#work);
    this.#server = createServer((request, response) => {
      request.resume();
      if (this.isProtected) protectedHandler(request, response);
      else this.#work(request, response, undefined);
    });
    // Envoy must never find a connection closed that it is about to use.
    this.#server.keepAliveTimeout = 0;
  }

  get counts(): ServiceCounts {
    return this.#workers.counts;
  }

  /** @param ratio workers that live, of all */
  setWorkers(ratio: number): void {
    this.#workers.setRatio(ratio);
  }

  /** @throws ServiceError LISTEN_FAILED */
  async listen(port: number, portSetting: string): Promise<number> {
    const place = { host: "127.0.0.1", port, portSetting, hostSetting: "127.0.0.1" };
    return (await listen(this.#server, { ...place, connectionsMax })).port;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #work: Work = (request, response, signal) => {
    const ticket = this.#workers.enter(workMsOf(request), (end) => {
      if (end === "lost") return void request.socket.destroy();
      if (response.destroyed) return;
      response.writeHead(httpStatuses.ok, { "content-type": "text/plain; charset=utf-8" });
      response.end("served\n");
    });
    response.once("close", () => {
      if (!response.writableFinished) ticket.callerLeft();
    });
    signal?.addEventListener("abort", () => ticket.stop(), { once: true });
  };
}

function workMsOf({ headers }: IncomingMessage): number {
  const stated = Number(headers[workHeader]);
  return Number.isFinite(stated) && stated > 0 ? Math.min(stated, workMsMax) : meanWorkMs;
}
