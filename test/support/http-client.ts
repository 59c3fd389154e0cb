import { Agent, type IncomingHttpHeaders, request } from "node:http";

/** What to ask for. */
export interface HttpAsk {
  readonly port: number;
  /** Default "/". */
  readonly path?: string;
  /** Default GET, or POST with a body. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What came back. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as they came: also what stands twice. */
  readonly rawHeaders: readonly string[];
  readonly body: string;
  /** Monotonic times of sending and of the answer's end, in milliseconds. */
  readonly sentMs: number;
  readonly answeredMs: number;
}

/** Silence of a server after which a request fails, in milliseconds. */
const silenceMsMax = 10_000;

/** Keeps connections open, as proxies and browsers do. */
export class HttpClient {
  readonly #agent = new Agent({ keepAlive: true });

  /** Rejects when the connection fails before the whole answer has arrived. */
  send({ port, path = "/", headers = {}, body, ...rest }: HttpAsk): Promise<HttpAnswer> {
    const sentMs = performance.now();
    const method = rest.method ?? (body === undefined ? "GET" : "POST");
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port, path, method, headers, agent: this.#agent };
      const sent = request({ ...options, timeout: silenceMsMax }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("error", reject);
        response.once("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            rawHeaders: response.rawHeaders,
            body: Buffer.concat(chunks).toString("utf8"),
            sentMs,
            answeredMs: performance.now(),
          }),
        );
      });
      sent.once("timeout", () => sent.destroy(new Error(`no answer in ${silenceMsMax} ms`)));
      sent.once("error", reject);
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
