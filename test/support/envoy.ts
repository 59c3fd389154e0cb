import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ChildProgram } from "./child-program.js";
import { type EnvoyOptions, envoyConfig } from "./envoy-config.js";
import { freePort } from "./free-port.js";
import { HttpClient } from "./http-client.js";
import { requireProgram } from "./programs.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** How long an Envoy may take to start, in milliseconds. */
const startMsMax = 30_000;

/** A real Envoy: one worker, on loopback. */
export class Envoy {
  /** Where its HTTP listener is. */
  readonly port: number;
  readonly #adminPort: number;
  readonly #stage: Stage;
  readonly #configPath: string;
  readonly #http = new HttpClient();
  #program: ChildProgram | undefined;

  private constructor(stage: Stage, place: { port: number; adminPort: number; path: string }) {
    this.#stage = stage;
    this.port = place.port;
    this.#adminPort = place.adminPort;
    this.#configPath = place.path;
    stage.atEnd(() => this.#http.close());
  }

  /** Where its admin port is. */
  get adminUrl(): string {
    return `http://127.0.0.1:${this.#adminPort}`;
  }

  /** Starts one; resolves when it takes requests. */
  static async start(stage: Stage, options: EnvoyOptions): Promise<Envoy> {
    const port = await freePort();
    const adminPort = await freePort();
    const path = join(stage.folder, `envoy-${port}.json`);
    const config = envoyConfig(options, { listenerPort: port, adminPort });
    await writeFile(path, JSON.stringify(config, undefined, 2));
    const envoy = new Envoy(stage, { port, adminPort, path });
    await envoy.restart();
    return envoy;
  }

  /** Starts one of a configuration that is there, whose ports are these. */
  static async startFile(
    stage: Stage,
    place: { readonly path: string; readonly port: number; readonly adminPort: number },
  ): Promise<Envoy> {
    const envoy = new Envoy(stage, place);
    await envoy.restart();
    return envoy;
  }

  /** Starts it again on the same ports, after `kill`. */
  async restart(): Promise<void> {
    const words = ["--config-path", this.#configPath, "--concurrency", "1"];
    words.push("--use-dynamic-base-id", "--log-level", "warning");
    // Ten seconds is what is usual, and what a test that reads an access log would wait for.
    words.push("--file-flush-interval-msec", "100");
    const file = await requireProgram("envoy");
    const program = this.#stage.spawn({ name: "envoy", file, args: words });
    this.#program = program;
    await waitFor(
      "Envoy is live",
      async () => {
        if (!program.isRunning) return "ended" as const;
        const { status } = await this.#http.send({ port: this.#adminPort, path: "/ready" });
        return status === 200 ? ("live" as const) : undefined;
      },
      { withinMs: startMsMax, everyMs: 50 },
    );
    if (!program.isRunning) throw new Error(`Envoy ended: ${program.output.slice(-2_000)}`);
  }

  /** Its process, once it was started. */
  get pid(): number {
    if (this.#program === undefined) throw new Error("Envoy was never started");
    return this.#program.pid;
  }

  /** What it has printed; an access log on standard output is in it. */
  get output(): string {
    return this.#program?.output ?? "";
  }

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    await this.#program?.kill();
  }

  /** Sets runtime keys of its admin layer, which must be there; an empty value takes a key out. */
  async setRuntime(values: Readonly<Record<string, string>>): Promise<void> {
    const path = `/runtime_modify?${new URLSearchParams(values)}`;
    const { status } = await this.#http.send({ port: this.#adminPort, path, method: "POST" });
    if (status !== 200) throw new Error(`runtime_modify answered ${status}`);
  }

  /** What a runtime key is set to; undefined where no layer sets it. */
  async runtimeValue(key: string): Promise<string | undefined> {
    const { body } = await this.#http.send({ port: this.#adminPort, path: "/runtime" });
    const { entries } = JSON.parse(body) as {
      readonly entries: Readonly<Record<string, { readonly final_value: string } | undefined>>;
    };
    return entries[key]?.final_value;
  }

  /** A counter or gauge of its own, by its full name; 0 when it has none of that name. */
  async stat(name: string): Promise<number> {
    const path = `/stats?filter=^${name.replaceAll(".", "\\.")}$`;
    const { body } = await this.#http.send({ port: this.#adminPort, path });
    return Number(body.trim().split(": ")[1] ?? 0);
  }
}
