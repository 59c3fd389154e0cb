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

  /** Starts it again on the same ports, after `kill`. */
  async restart(): Promise<void> {
    const words = ["--config-path", this.#configPath, "--concurrency", "1"];
    words.push("--use-dynamic-base-id", "--log-level", "warning");
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

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    await this.#program?.kill();
  }

  /** A counter or gauge of its own, by its full name; 0 when it has none of that name. */
  async stat(name: string): Promise<number> {
    const path = `/stats?filter=^${name.replaceAll(".", "\\.")}$`;
    const { body } = await this.#http.send({ port: this.#adminPort, path });
    return Number(body.trim().split(": ")[1] ?? 0);
  }
}
