import { resolve } from "node:path";
import {
  figuresOf,
  type LayersCounts,
  type LayersFigures,
} from "../../src/demo/three-layers/layers-counts.js";
import {
  initialSettings,
  type LayersSettings,
} from "../../src/demo/three-layers/layers-settings.js";
import type { ChildProgram } from "./child-program.js";
import { freePort } from "./free-port.js";
import { HttpClient } from "./http-client.js";
import type { LayersWorld } from "./layers-conditions.js";
import { requireProgram } from "./programs.js";
import type { Stage } from "./stage.js";
import { waitFor, within } from "./wait.js";

const main = process.env["E2E_MAIN"] ?? resolve("dist/cli/main.js");

/** How long the demo may take to show something, and to end, in milliseconds. */
const shownMsMax = 60_000;
const endMsMax = 15_000;

/** `headgate demo --three-layers`, changed and read as its page does. */
export class LayersDemo implements LayersWorld {
  readonly program: ChildProgram;
  /** Of its page. */
  readonly origin: string;
  readonly #port: number;
  readonly #http: HttpClient;
  #settings: LayersSettings = initialSettings;

  private constructor(program: ChildProgram, http: HttpClient) {
    this.program = program;
    this.#http = http;
    const [, port = ""] = /Open it\s+http:\/\/127\.0\.0\.1:(\d+)/.exec(program.output) ?? [];
    this.#port = Number(port);
    this.origin = `http://127.0.0.1:${port}`;
  }

  /** Starts one; it ends with the stage. */
  static async start(stage: Stage, ...flags: readonly string[]): Promise<LayersDemo> {
    const program = stage.spawn({
      name: "demo",
      file: process.execPath,
      args: [main, "demo", "--three-layers", "--no-install", ...flags],
      env: {
        ENVOY_PORT: String(await freePort()),
        PORT: String(await freePort()),
        GRPC_PORT: String(await freePort()),
        ENVOY_BIN: await requireProgram("envoy"),
      },
    });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    await waitFor("the demo says where to go", () => program.output.includes("Open it"), {
      withinMs: shownMsMax,
    });
    const demo = new LayersDemo(program, http);
    // Killed at once, it could not remove its folder.
    stage.atEnd(() => demo.end());
    return demo;
  }

  /** Asks it to end, and answers how it did. */
  end(): Promise<unknown> {
    this.program.signal("SIGINT");
    return within("the demo ends", endMsMax, this.program.exited);
  }

  async change(settings: Partial<LayersSettings>): Promise<void> {
    this.#settings = { ...this.#settings, ...settings };
    const { status } = await this.post(JSON.stringify(this.#settings));
    if (status !== 200) throw new Error(`the demo refuses settings with ${status}`);
  }

  /** What the page sends when something is changed. */
  post(body: string, headers: Readonly<Record<string, string>> = {}) {
    const own = { "content-type": "application/json", ...headers };
    return this.#http.send({
      port: this.#port,
      path: "/settings",
      method: "POST",
      headers: own,
      body,
    });
  }

  async counts(): Promise<LayersCounts> {
    return (await this.#state()).counts;
  }

  /** What the page is told. */
  async settings(): Promise<LayersSettings> {
    return (await this.#state()).settings;
  }

  async #state(): Promise<{ counts: LayersCounts; settings: LayersSettings }> {
    const { body } = await this.#http.send({ port: this.#port, path: "/state" });
    return JSON.parse(body);
  }

  async span(spanMs: number): Promise<LayersFigures> {
    const from = await this.counts();
    await new Promise((ended) => setTimeout(ended, spanMs));
    return figuresOf(from, await this.counts());
  }
}
