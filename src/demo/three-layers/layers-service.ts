import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { listen } from "../../app/base/listen.js";
import { httpAdmission } from "../../client/server/node-http.js";
import type { ServerAdmission } from "../../client/server/server-admission.js";
import type { Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { ServiceCounts } from "./layers-counts.js";
import { meanWorkMs, workHeader } from "./layers-settings.js";
import { LayersWorkers } from "./layers-workers.js";

/** Maximum work of a request, in milliseconds. */
const workMsMax = 10_000;

/** Envoy opens one connection for each request in flight. */
const connectionsMax = 20_000;

/** The service: an HTTP server with workers that requests share. */
export class LayersService {
  readonly #workers: LayersWorkers;
  readonly #server: Server;
  #isProtected = true;

  /** @param layer protects the service while it is on */
  constructor(clock: Clock, layer: ServerAdmission) {
    this.#workers = new LayersWorkers(clock);
    const protectedWork = httpAdmission(
      layer,
      (request: IncomingMessage, response: ServerResponse, { signal }) =>
        this.#work(request, response, signal),
    );
    this.#server = createServer((request, response) => {
      request.resume();
      if (this.#isProtected) protectedWork(request, response);
      else this.#work(request, response);
    });
    // Envoy must not use a connection that has just been closed.
    this.#server.keepAliveTimeout = 0;
  }

  get counts(): ServiceCounts {
    return this.#workers.counts;
  }

  /** Whether the layer in the service is on, also for earlier requests. */
  set isProtected(isOn: boolean) {
    this.#isProtected = isOn;
    this.#workers.skipsLeft = isOn;
  }

  /** @param ratio part of the workers that are alive */
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

  /** @param signal aborts if the work is no longer of use */
  #work(request: IncomingMessage, response: ServerResponse, signal?: AbortSignal): void {
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
  }
}

function workMsOf({ headers }: IncomingMessage): number {
  const stated = Number(headers[workHeader]);
  return Number.isFinite(stated) && stated > 0 ? Math.min(stated, workMsMax) : meanWorkMs;
}
