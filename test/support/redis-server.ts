import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { ChildProgram } from "./child-program.js";
import { freePort } from "./free-port.js";
import { requireProgram } from "./programs.js";
import { waitFor } from "./wait.js";

/** The servers that the Redis store is held against. */
export type RedisEngine = "redis" | "valkey";

/** How to start one. */
export interface RedisServerOptions {
  readonly engine: RedisEngine;
  /** More words of its command line. Example: `["--requirepass", "secret"]`. */
  readonly args?: readonly string[];
  /** The password that control connections use. */
  readonly password?: string;
}

/** Ports tried before giving up: another process may take a free one first. */
const portTriesMax = 3;

/** Waits for servers that start side by side; where one does not, it stops the others. */
export async function allStarted<T extends { stop(): Promise<void> }>(
  starting: readonly Promise<T>[],
): Promise<readonly T[]> {
  try {
    return await Promise.all(starting);
  } catch (error) {
    for (const one of await Promise.allSettled(starting)) {
      if (one.status === "fulfilled") await one.value.stop();
    }
    throw error;
  }
}

/** A real server in a directory of its own, on a free port of the loopback. Nothing is saved. */
export class RedisServer {
  readonly port: number;
  readonly socketPath: string;
  readonly #options: RedisServerOptions;
  readonly #directory: string;
  #program: ChildProgram | undefined;
  readonly #clients: Redis[] = [];

  private constructor(options: RedisServerOptions, place: { port: number; directory: string }) {
    this.#options = options;
    this.port = place.port;
    this.#directory = place.directory;
    this.socketPath = join(place.directory, "redis.sock");
  }

  /** Resolves when the server answers. */
  static async start(options: RedisServerOptions): Promise<RedisServer> {
    for (let tries = 1; ; tries += 1) {
      const directory = await mkdtemp(join(tmpdir(), `headgate-${options.engine}-`));
      const server = new RedisServer(options, { port: await freePort(), directory });
      try {
        await server.restart();
        return server;
      } catch (error) {
        await server.stop();
        if (tries >= portTriesMax) throw error;
      }
    }
  }

  get pid(): number {
    if (this.#program === undefined) throw new Error("the server does not run");
    return this.#program.pid;
  }

  /**
   * A connection of the test's own, to set things up and to look at them; closed by `stop`.
   *
   * @param enableReadyCheck whether calls wait until the server has loaded
   */
  client({ enableReadyCheck = true } = {}): Redis {
    const { password } = this.#options;
    const client = new Redis({
      enableReadyCheck,
      host: "127.0.0.1",
      port: this.port,
      ...(password === undefined ? {} : { password }),
      retryStrategy: () => 50,
    });
    client.on("error", () => {
      // Tests kill their servers; the commands that fail say so themselves.
    });
    this.#clients.push(client);
    return client;
  }

  /** Starts it, or starts it again on the same port after `kill`, with more words if need be. */
  async restart(moreArgs: readonly string[] = []): Promise<void> {
    const words = ["--port", String(this.port), "--bind", "127.0.0.1", "--dir", this.#directory];
    words.push("--unixsocket", this.socketPath, "--save", "", "--appendonly", "no");
    words.push("--daemonize", "no", ...(this.#options.args ?? []), ...moreArgs);
    const { engine } = this.#options;
    const program = new ChildProgram({
      name: engine,
      file: await requireProgram(engine),
      args: words,
    });
    this.#program = program;
    await waitFor("the server answers", () => !program.isRunning || this.#answers());
    if (!program.isRunning) throw new Error(`${engine} did not start: ${program.output}`);
  }

  /** Stops it in its tracks: connections stay open, nothing is answered. */
  pause(): void {
    this.#program?.signal("SIGSTOP");
  }

  resume(): void {
    this.#program?.signal("SIGCONT");
  }

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    await this.#program?.kill();
    this.#program = undefined;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    const client = new Redis({
      host: "127.0.0.1",
      port: this.port,
      lazyConnect: true,
      enableReadyCheck: false,
      // A server that wants a password refuses the greeting of protocol 3.
      protocol: 2,
      retryStrategy: () => null,
    });
    client.on("error", () => {
      // Not there yet.
    });
    try {
      await client.connect();
      await client.ping();
      return true;
    } catch (error) {
      // A server that wants a password, or that loads, is there.
      return error instanceof Error && /^(NOAUTH|LOADING)/.test(error.message);
    } finally {
      client.disconnect();
    }
  }
}
