import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { listen } from "../../app/base/listen.js";
import type { Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import { figuresOf, type LayersCounts, type LayersFigures } from "./layers-counts.js";
import { layersPage, layersScript, layersStyle } from "./layers-page.js";
import { type LayersRig, readLayersSettings } from "./layers-rig.js";

/** Number of seconds that the page shows. */
const secondsMax = 61;

/** Maximum size of a body. Settings are shorter. */
const bodyBytesMax = 1_000;

const connectionsMax = 100;

/** The page loads only its own resources, and cannot be embedded. */
const headers = {
  "content-security-policy": [
    "default-src 'none'",
    ...["script-src", "style-src", "connect-src"].map((what) => `${what} 'self'`),
    ...["base-uri", "form-action", "frame-ancestors"].map((what) => `${what} 'none'`),
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

const files: ReadonlyMap<string, readonly [type: string, text: string]> = new Map([
  ["/", ["text/html; charset=utf-8", layersPage]],
  ["/page.css", ["text/css; charset=utf-8", layersStyle]],
  ["/page.js", ["text/javascript; charset=utf-8", layersScript]],
  ["/favicon.ico", ["image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>"]],
]);

/** Serves the page of the example, its data and its settings. */
export class LayersSite {
  readonly #rig: LayersRig;
  readonly #clock: Clock;
  readonly #server: Server;
  readonly #figures: LayersFigures[] = [];
  #last: LayersCounts | undefined;
  #isClosed = false;
  #port = 0;

  constructor(rig: LayersRig, clock: Clock) {
    this.#rig = rig;
    this.#clock = clock;
    this.#server = createServer((request, response) => this.#answer(request, response));
    // The page polls every few seconds, and must not use a connection that is just being closed.
    this.#server.keepAliveTimeout = 0;
  }

  /** Figures of each second, the latest last. */
  get figures(): readonly LayersFigures[] {
    return this.#figures;
  }

  /** @throws ServiceError LISTEN_FAILED */
  async listen(): Promise<number> {
    const place = { host: "127.0.0.1", port: 0, connectionsMax };
    const at = await listen(this.#server, { ...place, portSetting: "0", hostSetting: "127.0.0.1" });
    this.#port = at.port;
    this.#watch();
    return this.#port;
  }

  close(): void {
    this.#isClosed = true;
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #watch(): void {
    this.#clock.schedule(1_000, () => {
      if (this.#isClosed) return;
      this.#watch();
      void this.#look();
    });
  }

  async #look(): Promise<void> {
    const counts = await this.#rig.counts();
    if (this.#last !== undefined) this.#figures.push(figuresOf(this.#last, counts));
    this.#last = counts;
    if (this.#figures.length > secondsMax) this.#figures.shift();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { method, url = "/" } = request;
    const file = files.get(url);
    if (!this.#isOwn(request)) end(response, httpStatuses.forbidden);
    else if (method === "GET" && file !== undefined) {
      response.writeHead(httpStatuses.ok, { ...headers, "content-type": file[0] });
      response.end(file[1]);
    } else if (method === "GET" && url === "/state") {
      void this.#tell(response);
    } else if (method === "POST" && url === "/settings") {
      void this.#change(request, response);
    } else end(response, httpStatuses.notFound);
  }

  /** Reports whether a request is not from another site in the user's browser. */
  #isOwn({ headers: { host, origin } }: IncomingMessage): boolean {
    const hosts = [`127.0.0.1:${this.#port}`, `localhost:${this.#port}`];
    const isOwnHost = host !== undefined && hosts.includes(host);
    return isOwnHost && (origin === undefined || origin === `http://${host}`);
  }

  async #tell(response: ServerResponse): Promise<void> {
    const counts = await this.#rig.counts();
    response.writeHead(httpStatuses.ok, { ...headers, "content-type": "application/json" });
    response.end(JSON.stringify({ settings: this.#rig.settings, counts, figures: this.#figures }));
  }

  async #change(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const settings = readLayersSettings(await readText(request));
    if (settings === undefined) return end(response, httpStatuses.badRequest);
    this.#rig.settings = settings;
    end(response, httpStatuses.ok);
  }
}

function end(response: ServerResponse, status: number): void {
  response.writeHead(status, headers);
  response.end();
}

/** Returns the body; empty if it is too long or incomplete. */
async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  try {
    for await (const chunk of request) {
      byteCount += chunk.length;
      if (byteCount > bodyBytesMax) return "";
      chunks.push(chunk);
    }
  } catch {
    return "";
  }
  return Buffer.concat(chunks).toString("utf8");
}
