import { connect } from "node:http2";
import { HttpClient } from "./http-client.js";
import type { Stage } from "./stage.js";

/** What a browser sends. */
export interface BrowserAsk {
  /** Default "/". */
  readonly path?: string;
  /** Default GET. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What it is answered. */
export interface BrowserAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** How a browser may speak to the port. */
export const browserProtocols = ["HTTP/1.1", "HTTP/2"] as const;

/** What a page of the console itself sends along. */
export const ownPage = { "sec-fetch-site": "same-origin", "content-type": "application/json" };

/**
 * A browser as far as the server sees one: it keeps cookies of the port and sends them back, and
 * paths go out as they are written.
 */
export class ConsoleBrowser {
  readonly #port: number;
  readonly #protocol: (typeof browserProtocols)[number];
  readonly #http = new HttpClient();
  readonly cookies = new Map<string, string>();

  constructor(
    stage: Stage,
    port: number,
    protocol: (typeof browserProtocols)[number] = "HTTP/1.1",
  ) {
    this.#port = port;
    this.#protocol = protocol;
    stage.atEnd(() => this.#http.close());
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async send(ask: BrowserAsk): Promise<BrowserAnswer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { ...(cookie === "" ? {} : { cookie }), ...ask.headers };
    const whole = { ...ask, headers };
    const answer =
      this.#protocol === "HTTP/1.1"
        ? await this.#http.send({ port: this.#port, ...whole })
        : await sendHttp2(this.origin, whole);
    this.#keep(answer.headers["set-cookie"]);
    return answer;
  }

  /** Signs in by a token; answers what the console is told. */
  async signIn(token: string): Promise<BrowserAnswer> {
    const body = JSON.stringify({ token });
    return this.send({ path: "/console/session", method: "POST", headers: ownPage, body });
  }

  /** Calls a method of the API as a page of the console does. */
  async call(
    method: string,
    request: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<BrowserAnswer> {
    const body = JSON.stringify(request);
    const all = { ...ownPage, ...headers };
    return this.send({ path: `/headgate.admin.v1.${method}`, method: "POST", headers: all, body });
  }

  #keep(set: unknown): void {
    for (const line of Array.isArray(set) ? set : []) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(String(line)) ?? [];
      if (/Max-Age=0(?:;|$)/.test(String(line))) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
  }
}

function sendHttp2(origin: string, ask: BrowserAsk): Promise<BrowserAnswer> {
  return new Promise((resolve, reject) => {
    const session = connect(origin);
    session.once("error", reject);
    const { path = "/", method = "GET", headers, body } = ask;
    const stream = session.request({ ":path": path, ":method": method, ...headers });
    let status = 0;
    let answered: Readonly<Record<string, unknown>> = {};
    const chunks: Buffer[] = [];
    stream.once("response", (told) => {
      status = told[":status"] ?? 0;
      answered = told;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.once("error", reject);
    stream.once("close", () => {
      session.close();
      resolve({ status, headers: answered, body: Buffer.concat(chunks).toString("utf8") });
    });
    stream.end(body);
  });
}
