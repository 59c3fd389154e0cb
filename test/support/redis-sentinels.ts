import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { ChildProgram } from "./child-program.js";
import { freePort } from "./free-port.js";
import { requireProgram } from "./programs.js";
import { allStarted, RedisServer } from "./redis-server.js";
import { waitFor } from "./wait.js";

/** How to start servers that sentinels watch. */
export interface RedisSentinelsOptions {
  /** Password of the servers, which the sentinels know too. */
  readonly password?: string;
  /** Password of the sentinels themselves. */
  readonly sentinelPassword?: string;
  /** More lines of the sentinels' configuration. */
  readonly lines?: readonly string[];
}

/** What the sentinels call the primary. */
export const sentinelPrimaryName = "gate-1.limits";

/** Sentinels that must agree that the primary is gone. */
const quorum = 2;

/**
 * How often a sentinel tells others of itself, and asks servers for theirs, in milliseconds: while
 * they get to know each other, and as it is usually, which failovers need. Source: SENTINEL DEBUG.
 */
const quickPeriods = ["publish-period", "100", "info-period", "200"];
const defaultPeriods = ["publish-period", "2000", "info-period", "10000"];

/**
 * Silence after which a sentinel gives a server up, in milliseconds: longer than a busy machine
 * lets a server wait that is well, since no test expects a second failover.
 */
const downAfterMs = 2_000;

/**
 * A primary, two replicas and three sentinels on the loopback. They fail over within a few seconds
 * of a crash.
 */
export class RedisSentinels {
  /** The first is the primary to begin with. */
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly RedisSentinel[];

  private constructor(servers: readonly RedisServer[], sentinels: readonly RedisSentinel[]) {
    this.servers = servers;
    this.sentinels = sentinels;
  }

  /** Resolves when the replicas follow and every sentinel knows the others and the replicas. */
  static async start(options: RedisSentinelsOptions = {}): Promise<RedisSentinels> {
    const { password } = options;
    const login = password === undefined ? {} : { password };
    const secrets = password === undefined ? [] : ["--requirepass", password];
    if (password !== undefined) secrets.push("--masterauth", password);
    const args = [...secrets, "--repl-diskless-sync-delay", "0", "--replica-announce-ip"];
    args.push("127.0.0.1");
    const primary = await RedisServer.start({ engine: "redis", args, ...login });
    const started: { stop(): Promise<void> }[] = [primary];
    try {
      const following = [...args, "--replicaof", "127.0.0.1", String(primary.port)];
      const replica = { engine: "redis", args: following, ...login } as const;
      const replicas = await allStarted([1, 2].map(() => RedisServer.start(replica)));
      started.push(...replicas);
      const sentinels = await allStarted(
        [1, 2, 3].map(() => RedisSentinel.start(primary.port, options)),
      );
      started.push(...sentinels);
      const group = new RedisSentinels([primary, ...replicas], sentinels);
      await group.#settle(primary);
      return group;
    } catch (error) {
      await Promise.all(started.map((one) => one.stop()));
      throw error;
    }
  }

  /** REDIS_URL for REDIS_TYPE=sentinel. */
  get url(): string {
    const places = this.sentinels.map(({ port }) => `127.0.0.1:${port}`);
    return [sentinelPrimaryName, ...places].join();
  }

  /** The server that all sentinels name. */
  async primary(): Promise<RedisServer> {
    return waitFor("the sentinels agree", async () => {
      const ports = await Promise.all(this.sentinels.map((sentinel) => sentinel.primaryPort()));
      const [port] = ports;
      if (ports.some((other) => other !== port)) return undefined;
      return this.servers.find((server) => server.port === port);
    });
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map((one) => one.stop()));
  }

  async #settle(primary: RedisServer): Promise<void> {
    const control = primary.client();
    await waitFor("both replicas follow", async () => {
      const states = (await control.info("replication")).match(/state=online/g) ?? [];
      return states.length === 2;
    });
    await waitFor(
      "the sentinels know each other and the replicas",
      async () => {
        const states = await Promise.all(this.sentinels.map((sentinel) => sentinel.state()));
        return states.every((state) => {
          return state.get("num-slaves") === "2" && state.get("num-other-sentinels") === "2";
        });
      },
      { withinMs: 30_000 },
    );
    await Promise.all(this.sentinels.map((sentinel) => sentinel.setPeriods(defaultPeriods)));
  }
}

/** One sentinel, with a file of its own, which it writes to. */
export class RedisSentinel {
  readonly port: number;
  readonly #folder: string;
  readonly #program: ChildProgram;
  readonly #client: Redis;

  private constructor(place: { port: number; folder: string; program: ChildProgram }, pw?: string) {
    this.port = place.port;
    this.#folder = place.folder;
    this.#program = place.program;
    this.#client = new Redis({
      host: "127.0.0.1",
      port: place.port,
      ...(pw === undefined ? {} : { password: pw }),
      enableReadyCheck: false,
      retryStrategy: () => 50,
    });
    this.#client.on("error", () => {
      // Tests stop them; the commands that fail say so themselves.
    });
  }

  /** Starts one that watches the server on this port. */
  static async start(
    primaryPort: number,
    { password, sentinelPassword, lines: moreLines = [] }: RedisSentinelsOptions,
  ): Promise<RedisSentinel> {
    const port = await freePort();
    const folder = await mkdtemp(join(tmpdir(), "headgate-sentinel-"));
    const name = sentinelPrimaryName;
    const lines = [
      `port ${port}`,
      "bind 127.0.0.1",
      `dir ${folder}`,
      `sentinel monitor ${name} 127.0.0.1 ${primaryPort} ${quorum}`,
      `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
      `sentinel failover-timeout ${name} 5000`,
      ...moreLines,
    ];
    if (password !== undefined) lines.push(`sentinel auth-pass ${name} ${password}`);
    if (sentinelPassword !== undefined) {
      lines.push(`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`);
    }
    const file = join(folder, "sentinel.conf");
    await writeFile(file, `${lines.join("\n")}\n`);
    const args = [file, "--sentinel"];
    const server = await requireProgram("redis");
    const program = new ChildProgram({ name: `sentinel on ${port}`, file: server, args });
    const sentinel = new RedisSentinel({ port, folder, program }, sentinelPassword);
    await sentinel.setPeriods(quickPeriods);
    return sentinel;
  }

  /** How often it does what it does again and again; before 7.0 that is as it is. */
  async setPeriods(periods: readonly string[]): Promise<void> {
    await this.#client.call("sentinel", "debug", ...periods).catch(() => {});
  }

  /** What it knows of the primary, by name. Source: SENTINEL MASTER. */
  async state(): Promise<ReadonlyMap<string, string>> {
    const fields = await this.#client.call("sentinel", "master", sentinelPrimaryName);
    if (!Array.isArray(fields)) throw new Error("the sentinel told nothing");
    const names = fields.filter((_, i) => i % 2 === 0).map(String);
    return new Map(names.map((name, i) => [name, String(fields[2 * i + 1])]));
  }

  /** The port of the server that it names. */
  async primaryPort(): Promise<number> {
    const words = ["get-master-addr-by-name", sentinelPrimaryName];
    const place = await this.#client.call("sentinel", ...words);
    return Number(Array.isArray(place) ? place[1] : Number.NaN);
  }

  /** Makes it replace a primary that is well. */
  async failover(): Promise<void> {
    await this.#client.call("sentinel", "failover", sentinelPrimaryName);
  }

  /** Makes it forget what it watches. */
  async forget(): Promise<void> {
    await this.#client.call("sentinel", "remove", sentinelPrimaryName);
  }

  /** Makes it watch one server more, under this name. */
  async monitor(name: string, port: number): Promise<void> {
    await this.#client.call("sentinel", "monitor", name, "127.0.0.1", port, quorum);
  }

  /** Stops it in its tracks. */
  pause(): void {
    this.#program.signal("SIGSTOP");
  }

  /** Lets it go on. */
  resume(): void {
    this.#program.signal("SIGCONT");
  }

  async stop(): Promise<void> {
    this.#client.disconnect();
    await this.#program.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
